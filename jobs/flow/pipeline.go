package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// begin starts a run, or has it wait for the one that it follows.
func (s *step) begin(ctx context.Context) ([]decide.Event, error) {
	before, err := s.before(ctx)
	if err != nil {
		return nil, err
	}
	if s.l.run.Pipeline == 3 && before != nil && !before.ended {
		return nil, nil // the run before asks again when it ends
	}
	s.limits()
	return append(s.holds(before, true), decide.Begin{}), nil
}

// followed is what a run needs to know of the one before it.
type followed struct {
	ended bool
	nodes map[string]string // statuses by path
}

// before reads the run that this one follows; nil if there is none, or none any more.
func (s *step) before(ctx context.Context) (*followed, error) {
	if s.l.run.Before == nil {
		return nil, nil
	}
	run, err := s.e.c.store.Run(ctx, s.tx, *s.l.run.Before)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &followed{ended: run.EndedAt != nil, nodes: map[string]string{}}
	if f.ended || s.l.run.Pipeline == 3 {
		return f, nil
	}
	nodes, err := s.e.c.store.Nodes(ctx, s.tx, run.ID)
	for i := range nodes {
		f.nodes[nodes[i].Path] = nodes[i].Status
	}
	return f, err
}

// holds are the events that release nodes whose turn it is, and when the run begins hold those whose turn has not come.
func (s *step) holds(before *followed, begins bool) []decide.Event {
	var events []decide.Event
	for n := range s.l.graph.Nodes {
		if s.l.graph.Nodes[n].Type == graph.TypeFlow {
			continue
		}
		open := s.isOpen(n, before)
		switch {
		case !open && begins:
			events = append(events, decide.Hold{Node: n, By: fmt.Sprintf("run %d (pipeline %d)", *s.l.run.Before, s.l.run.Pipeline)})
		case open && s.l.machine.Node(n).Held != "":
			events = append(events, decide.Release{Node: n})
		}
	}
	return events
}

// isOpen tells whether a node may start for all that the run before still does.
func (s *step) isOpen(n int, before *followed) bool {
	if before == nil || before.ended {
		return true
	}
	done := func(path string) bool {
		status, found := before.nodes[path]
		return !found || decide.Status(status).Ended()
	}
	path := s.l.graph.Nodes[n].Path
	if !done(path) {
		return false
	}
	if s.l.run.Pipeline == 1 {
		return true
	}
	return !slices.ContainsFunc(s.l.children[n], func(child int) bool { return !done(s.l.graph.Nodes[child].Path) })
}

// released looks again at what the run before has done.
func (s *step) released(ctx context.Context) ([]decide.Event, error) {
	if s.l.run.Pipeline == 3 {
		if s.l.machine.Run().Status != decide.Preparing {
			return nil, nil
		}
		return s.begin(ctx)
	}
	before, err := s.before(ctx)
	if err != nil {
		return nil, err
	}
	return s.holds(before, false), nil
}

// tellFollowers has the runs that follow this one look again if a node has ended.
func (s *step) tellFollowers(ctx context.Context) error {
	if !s.l.run.Followed {
		return nil
	}
	some := s.effects.Ended
	for _, n := range s.effects.Changed {
		some = some || s.l.machine.Node(n).Status.Ended()
	}
	if !some {
		return nil
	}
	followers, err := s.e.c.store.Followers(ctx, s.tx, s.l.run)
	if err != nil {
		return err
	}
	for _, id := range followers {
		if err := s.e.c.store.Ask(ctx, s.tx, id, -1, actRelease, nil); err != nil {
			return err
		}
	}
	return nil
}

// next has the run begin that waits for the end of this one, if nothing else is in its way. It is a step of its own, because it takes the
// project's lock, which somebody's open transaction may hold. If it is this very run, which is to go on, it begins in this step.
func (s *step) next(ctx context.Context) ([]decide.Event, error) {
	db := s.e.c.store
	if err := db.LockProjectID(ctx, s.tx, s.l.run.ProjectID); err != nil {
		return nil, err
	}
	live, err := db.LiveRuns(ctx, s.tx, s.l.run.ProjectID, s.l.run.Flow)
	if err != nil {
		return nil, err
	}
	next := nextInLine(live)
	switch {
	case next == nil:
		return nil, nil
	case next.ID == s.l.run.ID:
		return s.begin(ctx)
	}
	if err := db.Prepare(ctx, s.tx, next.ID); err != nil {
		return nil, err
	}
	return nil, db.Ask(ctx, s.tx, next.ID, -1, actBegin, nil)
}

// nextInLine picks the run that begins of those that are QUEUED; nil if none does. The others are in its way, but for those that wait for a
// QUEUED one themselves, because they follow it in a pipeline, directly or through others: each would wait for the other.
func nextInLine(live []store.Run) (next *store.Run) {
	byID := make(map[int64]*store.Run, len(live))
	for i := range live {
		byID[live[i].ID] = &live[i]
	}
	queued := func(r *store.Run) bool { return decide.Status(r.Status) == decide.Queued }
	for i := range live {
		r := &live[i]
		if queued(r) {
			if next == nil || r.Priority > next.Priority {
				next = r
			}
			continue
		}
		first := r // of those that it follows
		for hops := 0; first != nil && !queued(first) && hops < len(live); hops++ {
			before := first.Before
			if first = nil; before != nil {
				first = byID[*before]
			}
		}
		if first == nil {
			return nil
		}
	}
	return next
}
