package decide

import (
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// None is the number of no node.
const None = -1

// Node is the state of a node, which a row keeps. Rows are numbered as the graph's nodes are; instances of for_each follow, in the
// order in which they were made.
type Node struct {
	Status  Status
	Try     int               // how often it was started over: by a person, or with the embedded flow around it
	Attempt int               // index of the last attempt of this try; of an embedded flow: of its own retries
	Outputs map[string]string // of a job, an embedded flow (those of its end nodes), a for_each (lists)
	Reason  string            // for people: why it failed, was cancelled, or is held to have succeeded
	Held    string            // for people: who holds it; "": nobody, it may start

	// Of an instance of a for_each:
	Template int // the node that it is an instance of
	Index    int
	Item     string
}

// Run is the state of a run, which a row keeps.
type Run struct {
	Status   Status
	Reason   string // for people: why it is being killed, or ended otherwise than well
	Settings Settings
	Disabled map[string]bool // paths of instances of for_each that will be skipped; those of other nodes do no harm
}

// Settings are what a run decides by.
type Settings struct {
	OnFailure      graph.OnFailure
	OnCancelledEnd graph.OnCancelledEnd
	MaxParallel    int
}

// DefaultMaxParallel is how many jobs of one run there are at a time, unless the flow or the run says otherwise.
const DefaultMaxParallel = 10

// DefaultSettings returns the settings of a flow, for a project of some format.
func DefaultSettings(format string, opts graph.Options) Settings {
	return Settings{OnFailure: opts.OnFailure, OnCancelledEnd: opts.OnCancelledEnd, MaxParallel: opts.MaxParallel}.withDefaults(format)
}

func (s Settings) withDefaults(format string) Settings {
	if s.OnFailure == "" {
		s.OnFailure = graph.FinishCurrent
	}
	if s.OnCancelledEnd == "" {
		s.OnCancelledEnd = graph.EndSucceeded
		if format == graph.FormatFlow1 || format == graph.FormatFlow2 {
			s.OnCancelledEnd = graph.EndKilled
		}
	}
	if s.MaxParallel <= 0 {
		s.MaxParallel = DefaultMaxParallel
	}
	return s
}
