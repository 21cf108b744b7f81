package flow

import (
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// StepObserver is told what an engine does, on the goroutine that does it: it must be quick and must not block.
type StepObserver interface {
	// Stepped is called after a step of a run was committed. s is only valid during the call.
	Stepped(s *StepStats)
	// DutyStepped is called after each look for runs to advance, and each sweep of old ones: it comes again after a time, or has failed.
	DutyStepped(duty string, again time.Duration, err error)
}

// Duties of an engine, as observers are told of them.
const (
	dutyAdvance = "flows"
	dutySweep   = "sweeper of flows"
)

// StepStats is one step of a run.
type StepStats struct {
	Project, Flow string
	Took          time.Duration
	Reports       int            // that were applied
	Nodes         map[string]int // that ended, by status
	Missed        int            // limits of time (SLAs) that passed
	Ended         string         // the run's status, if it came to its end
	Lasted        time.Duration  // from its start, or from when it last went on, to that end
}

type noObserver struct{}

func (noObserver) Stepped(*StepStats)                       {}
func (noObserver) DutyStepped(string, time.Duration, error) {}

// EndStatuses are those with which runs end.
func EndStatuses() []string {
	return []string{decide.Succeeded.String(), decide.Failed.String(), decide.Killed.String()}
}

// NodeEndStatuses are those with which nodes end.
func NodeEndStatuses() []string {
	return append(EndStatuses(), decide.FailedSucceeded.String(), decide.Skipped.String(), decide.Cancelled.String())
}

// countEnd notes that a node has ended, if it has in this step.
func (s *StepStats) countEnd(was, is decide.Status, again bool) {
	if !is.Ended() || was.Ended() && !again {
		return
	}
	if s.Nodes == nil {
		s.Nodes = map[string]int{}
	}
	s.Nodes[is.String()]++
}

// told is what the observer is told of a step of a run that was read as it was before.
func (s *step) told(run *store.Run, reports int) *StepStats {
	s.stats.Project, s.stats.Flow, s.stats.Reports, s.stats.Missed = run.Project, run.Flow, reports, len(s.misses)
	if !s.effects.Ended {
		return &s.stats
	}
	s.stats.Ended = s.l.machine.Run().Status.String()
	for _, from := range []*time.Time{run.ResumedAt, run.StartedAt} {
		if from != nil {
			s.stats.Lasted = max(0, s.now.Sub(*from))
			break
		}
	}
	return &s.stats
}
