package flow

import (
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/mark"
)

// NodeRef says which node of which run a job works for.
type NodeRef struct {
	Run  int64
	Path string // "outer:inner"; of an instance of a for_each "node[3]"
	Try  int    // how often the node was started over before
}

// NodeOf tells a worker which node its job works for; false if it is no flow's.
func NodeOf(job *rivertype.JobRow) (NodeRef, bool) {
	m := mark.Of(job.Metadata)
	if m == nil {
		return NodeRef{}, false
	}
	return NodeRef{m.Run, m.Path, m.Try}, true
}
