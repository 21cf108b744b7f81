package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/internal/mark"
)

// retryOf is a node's retry as its job's mark holds it.
func retryOf(r graph.Retry) *mark.Retry {
	return &mark.Retry{
		Backoff: time.Duration(r.Backoff).Seconds(), MaxBackoff: time.Duration(r.MaxBackoff).Seconds(), Jitter: r.Jitter,
	}
}

// start makes jobs of the nodes that are to start. Those that cannot be made fail, and what follows from that is started too.
func (s *step) start(ctx context.Context) error {
	var params []river.InsertManyParams
	var nodes []int
	var inserted []*rivertype.JobInsertResult
	for pending := s.effects.Start; ; {
		for len(pending) > 0 {
			var faults []decide.Event
			for _, n := range pending {
				p, err := s.jobOf(n)
				if err != nil {
					faults = append(faults, decide.CouldNotStart{Node: n, Reason: err.Error()})
					continue
				}
				params, nodes = append(params, p), append(nodes, n)
			}
			pending = s.couldNotStart(faults...)
		}
		if len(params) == 0 {
			return nil
		}
		var err error
		inserted, err = s.e.c.jobs.InsertManyTx(ctx, s.tx, params)
		if err == nil {
			break
		}
		var invalid *jobs.InvalidJobError // nothing was stored; tried again it would be as wrong
		if !errors.As(err, &invalid) || invalid.Index >= len(nodes) {
			return fmt.Errorf("insert the jobs of nodes: %w", err)
		}
		pending = s.couldNotStart(decide.CouldNotStart{Node: nodes[invalid.Index], Reason: invalid.Err.Error()})
		params, nodes = slices.Delete(params, invalid.Index, invalid.Index+1), slices.Delete(nodes, invalid.Index, invalid.Index+1)
	}
	for i, n := range nodes {
		r := s.l.row(n)
		if r.JobID != nil {
			r.Jobs = append(r.Jobs, *r.JobID)
			s.settled = append(s.settled, *r.JobID)
		}
		r.JobID = &inserted[i].Job.ID
	}
	return nil
}

// couldNotStart tells the machine, and returns the nodes that are to start for it.
func (s *step) couldNotStart(faults ...decide.Event) []int {
	if len(faults) == 0 {
		return nil
	}
	effects := s.l.machine.Apply(faults...)
	s.effects = s.l.machine.Merge(s.effects, effects)
	return effects.Start
}

// jobOf makes the job of a node, with its parameters resolved.
func (s *step) jobOf(n int) (river.InsertManyParams, error) {
	l, m := s.l, s.l.machine
	spec, state := m.Spec(n), m.Node(n)
	args, err := l.argsOf(n)
	if err != nil {
		return river.InsertManyParams{}, err
	}
	k := mark.Mark{Run: l.run.ID, Node: int32(n), Path: m.Path(n), Try: state.Try, Timeout: s.timeout(n, spec), Retry: retryOf(spec.Retry)}
	metadata, err := k.Metadata(s.followedBy(k.Path))
	if err != nil {
		return river.InsertManyParams{}, err
	}
	opts := &river.InsertOpts{
		MaxAttempts: spec.Retry.Max + 1, Metadata: metadata, Queue: l.options.Queue, Priority: l.options.JobPriority,
	}
	if spec.Queue != "" {
		opts.Queue = spec.Queue
	}
	if spec.Priority != 0 {
		opts.Priority = spec.Priority
	}
	return river.InsertManyParams{Args: args, InsertOpts: opts}, nil
}
