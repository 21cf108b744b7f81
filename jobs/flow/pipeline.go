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
	l := s.l
	if l.run.Before != nil {
		before, err := s.before(ctx)
		if err != nil {
			return nil, err
		}
		if l.run.Pipeline == 3 && before != nil && !before.ended {
			return nil, nil // the run before asks again when it ends
		}
		events := s.holds(before, true)
		s.limits()
		return append(events, decide.Begin{}), nil
	}
	s.limits()
	return one(decide.Begin{}), nil
}

// followed is what a run needs to know of the one before it.
type followed struct {
	ended bool
	nodes map[string]string // statuses by path
}

// before reads the run that this one follows; nil if it is gone.
func (s *step) before(ctx context.Context) (*followed, error) {
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

// holds are the events that hold nodes whose turn has not come, or release those whose turn it is.
func (s *step) holds(before *followed, first bool) []decide.Event {
	var events []decide.Event
	for n := range s.l.graph.Nodes {
		if s.l.graph.Nodes[n].Type == graph.TypeFlow {
			continue
		}
		open := s.isOpen(n, before)
		switch {
		case !open && first:
			events = append(events, decide.Hold{Node: n, By: fmt.Sprintf("run %d (pipeline %d)", *s.l.run.Before, s.l.run.Pipeline)})
		case open && !first && s.l.machine.Node(n).Held != "":
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
	if s.l.run.Before == nil {
		return nil, nil
	}
	before, err := s.before(ctx)
	if err != nil {
		return nil, err
	}
	if s.l.run.Pipeline == 3 {
		if before == nil || before.ended {
			s.limits()
			return one(decide.Begin{}), nil
		}
		return nil, nil
	}
	return s.holds(before, false), nil
}

// unheld adds to what a person wants of a run that had ended the releases that nobody told it of since.
func (s *step) unheld(ctx context.Context, events []decide.Event) ([]decide.Event, error) {
	if s.l.run.Before == nil || s.l.run.Pipeline == 3 {
		return events, nil
	}
	more, err := s.released(ctx)
	return append(events, more...), err
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

// next has the run begin that waits for the end of this one, if no other is live. It is a step of its own, because it takes the
// project's lock, which somebody's open transaction may hold.
func (s *step) next(ctx context.Context) error {
	db := s.e.c.store
	if err := db.LockProjectID(ctx, s.tx, s.l.run.ProjectID); err != nil {
		return err
	}
	live, err := db.LiveRuns(ctx, s.tx, s.l.run.ProjectID, s.l.run.Flow)
	if err != nil {
		return err
	}
	var next *store.Run
	for i := range live {
		r := &live[i]
		if decide.Status(r.Status) != decide.Queued {
			return nil
		}
		if next == nil || r.Priority > next.Priority {
			next = r
		}
	}
	if next == nil {
		return nil
	}
	if err := db.Prepare(ctx, s.tx, next.ID); err != nil {
		return err
	}
	return db.Ask(ctx, s.tx, next.ID, -1, actBegin, nil)
}
