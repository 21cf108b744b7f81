package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// step is one transaction that advances a run.
type step struct {
	e   *engine
	tx  pgx.Tx
	l   *loaded
	now time.Time // the database's

	effects decide.Effects
	timers  []store.Timer
	notices []notice.Args
	due     []dueSLA
	stats   StepStats
	misses  []store.Miss
	settled []int64 // jobs of nodes that have been started over, or marked as succeeded: nobody needs to look after their dead letters
}

// advance applies what reports say to a run, and tells whether it did: somebody else may be at it, who will see them all.
func (e *engine) advance(ctx context.Context, id int64) (moved bool, err error) {
	var cancel []int64
	var l *loaded
	var stats *StepStats
	taken, ended, began := 0, false, time.Now()
	err = e.c.store.Tx(ctx, func(tx pgx.Tx) error {
		run, now, err := e.c.store.TryLock(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return e.c.store.DropOrphans(ctx, tx, id) // nothing, if somebody else has locked it
		}
		if err != nil {
			return err
		}
		reports, err := e.c.store.Reports(ctx, tx, id, e.head.Floor(), reportBatch)
		if err != nil || len(reports) == 0 {
			return err
		}
		moved = true
		if l, err = e.load(ctx, tx, run); err != nil {
			return err
		}
		l.now = now
		s := &step{e: e, tx: tx, l: l, now: now, effects: decide.Effects{FirstFailure: decide.None}}
		if err := s.take(ctx, reports); err != nil {
			return err
		}
		cancel = s.jobsOf(s.effects.Cancel)
		taken, ended = len(reports), s.effects.Ended
		stats = s.told(&run, taken)
		return e.c.store.DeleteReports(ctx, tx, reports)
	})
	if err != nil {
		e.memory.forget(id) // it may be ahead of the rows
		return false, err
	}
	if ended {
		e.tellEnded(l)
	}
	if moved {
		l.run.Step++
		e.memory.keep(l)
		e.head.moved(taken)
		stats.Took = time.Since(began)
		e.c.config.StepObserver.Stepped(stats)
	}
	if len(cancel) > 0 {
		e.cancel(ctx, cancel)
		if _, err := e.c.store.ReportMissed(ctx, e.head.Floor()); err != nil { // those that had not begun
			return moved, err
		}
	}
	return moved, nil
}

// take applies reports and stores what follows.
func (s *step) take(ctx context.Context, reports []store.Report) error {
	var events []decide.Event
	for i := range reports {
		more, err := s.events(ctx, &reports[i])
		if err != nil {
			return err
		}
		events = append(events, more...)
	}
	s.apply(ctx, events...)
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, r := range s.effects.Retry {
		s.again(r)
	}
	for _, r := range s.effects.Limit {
		s.limitFlow(r)
	}
	if err := s.e.write(ctx, s.tx, s.l, s.effects, s.now, &s.stats); err != nil {
		return err
	}
	if err := s.e.c.store.DropLetters(ctx, s.tx, s.settled); err != nil {
		return err
	}
	if err := s.e.c.store.SetTimers(ctx, s.tx, s.l.run.ID, s.timers); err != nil {
		return err
	}
	s.missed(ctx)
	if n := s.effects.FirstFailure; n != decide.None {
		s.notify(notice.FirstFailure, s.l.machine.Path(n), s.l.machine.Node(n).Reason, s.l.options.Notify.FirstFailure)
	}
	if err := s.tellFollowers(ctx); err != nil {
		return err
	}
	if s.effects.More {
		if err := s.e.c.store.Ask(ctx, s.tx, s.l.run.ID, -1, actMore, nil); err != nil {
			return err
		}
	}
	if s.effects.Ended {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	if err := s.e.c.store.AddMisses(ctx, s.tx, &s.l.run, s.misses); err != nil {
		return err
	}
	return s.sendNotices(ctx)
}

// apply takes events into the machine and gathers the effects. A person's wish that is not possible any more is only logged: whoever
// asked saw the run as it was then.
func (s *step) apply(ctx context.Context, events ...decide.Event) {
	effects := s.l.machine.Apply(events...)
	for _, r := range effects.Refused {
		s.e.c.log.WarnContext(ctx, "a run cannot do what was asked", "run", s.l.run.ID, "why", r.Reason)
	}
	s.effects = s.l.machine.Merge(s.effects, effects)
}

// events are what a report means.
func (s *step) events(ctx context.Context, r *store.Report) ([]decide.Event, error) {
	if r.Outcome != nil {
		return s.jobEnded(r), nil
	}
	switch action := text(r.Action); action {
	case actBegin:
		return s.begin(ctx)
	case actNext:
		return s.next(ctx)
	case actMore:
		return nil, nil
	case actKill:
		return one(decide.Kill{Reason: whyKilled(r.Args)}), nil
	case actSucceed:
		var m marked
		if err := json.Unmarshal(r.Args, &m); err != nil {
			return nil, fmt.Errorf("nodes of %s: %w", action, err)
		}
		var events []decide.Event
		for _, n := range m.Nodes {
			events = append(events, decide.MarkSucceeded{Node: n, By: m.By})
		}
		s.settled = append(s.settled, s.jobsOf(m.Nodes)...)
		return events, nil
	case actPause, actResume, actRetry, actRerun:
		var nodes []int
		if err := json.Unmarshal(r.Args, &nodes); err != nil {
			return nil, fmt.Errorf("nodes of %s: %w", action, err)
		}
		return wishes(action, nodes), nil
	case actRelease:
		return s.released(ctx)
	case actAgain:
		var due decide.RetryDue
		if err := json.Unmarshal(r.Args, &due); err != nil {
			return nil, fmt.Errorf("retry of a flow: %w", err)
		}
		return one(due), nil
	case actTimeout:
		var passed decide.Retry
		if err := json.Unmarshal(r.Args, &passed); err != nil {
			return nil, fmt.Errorf("timeout of a flow: %w", err)
		}
		return s.timedOut(passed), nil
	default:
		if no, is := strings.CutPrefix(action, actSLA+":"); is {
			n := decide.None
			if r.Node != nil {
				n = int(*r.Node)
			}
			return s.sla(ctx, no, n), nil
		}
		s.e.c.log.WarnContext(ctx, "nobody knows what was asked of a run", "run", s.l.run.ID, "action", action)
		return nil, nil
	}
}

// whyKilled is why a run was killed by somebody, whose name a report's args are.
func whyKilled(args []byte) string {
	var by string
	if json.Unmarshal(args, &by) != nil || by == "" {
		return ""
	}
	return "the run was killed by " + by
}

// wishes are the events of what a person wants.
func wishes(action string, nodes []int) (events []decide.Event) {
	switch {
	case action == actKill:
		return one(decide.Kill{})
	case action == actPause:
		return one(decide.Pause{})
	case action == actResume:
		return one(decide.Resume{})
	case action == actRetry && len(nodes) == 0:
		return one(decide.RetryFailed{})
	case action == actRerun:
		return one(decide.Rerun{Nodes: nodes})
	}
	for _, n := range nodes {
		switch action {
		case actRetry:
			events = append(events, decide.RetryFlow{Node: n})
		case actSucceed:
			events = append(events, decide.MarkSucceeded{Node: n})
		}
	}
	return events
}

func one(e decide.Event) []decide.Event { return []decide.Event{e} }

// jobEnded is the event of a job's end, unless a newer job has taken its place.
func (s *step) jobEnded(r *store.Report) []decide.Event {
	if r.Node == nil || *r.Node < 0 || int(*r.Node) >= len(s.l.rows) {
		return nil // a mark that this engine has not made
	}
	n := int(*r.Node)
	row := &s.l.rows[n]
	if row.JobID == nil || r.JobID == nil || *row.JobID != *r.JobID {
		return nil
	}
	row.StartedAt = r.StartedAt
	if r.EndedAt != nil {
		row.EndedAt = r.EndedAt
	}
	e := decide.Ended{Node: n, Try: s.l.machine.Node(n).Try, Reason: text(r.Error)}
	if r.Attempt != nil {
		e.Attempt = max(0, int(*r.Attempt)-1)
	}
	switch *r.Outcome {
	case "completed":
		outputs, err := outputsOf(s.l.machine.Spec(n), r.Output)
		e.Outcome, e.Outputs = decide.JobSucceeded, outputs
		if err != nil {
			e.Outcome, e.Reason = decide.JobFailed, err.Error()
		}
	case "cancelled":
		if strings.HasSuffix(e.Reason, rivertype.ErrJobCancelledRemotely.Error()) { // which is no reason
			e.Reason = ""
		}
		e.Outcome = decide.JobKilled
		if r.StartedAt == nil && (r.Attempt == nil || *r.Attempt == 0) { // no attempt had begun
			e.Outcome = decide.JobCancelled
		}
	default:
		e.Outcome = decide.JobFailed
	}
	return one(e)
}

// again sets the timer for the next attempt of a whole embedded flow.
func (s *step) again(r decide.Retry) {
	args, err := json.Marshal(decide.RetryDue(r))
	if err != nil {
		return // not reached: three numbers
	}
	wait := retryOf(s.l.machine.Spec(r.Node).Retry).Wait(r.Attempt)
	s.timers = append(s.timers, store.Timer{Node: r.Node, What: actAgain, After: wait, Args: args})
}

// jobsOf are the jobs of nodes.
func (s *step) jobsOf(nodes []int) []int64 {
	var ids []int64
	for _, n := range nodes {
		if id := s.l.rows[n].JobID; id != nil {
			ids = append(ids, *id)
		}
	}
	return ids
}

// end does what follows from the end of the run: the next one that waits begins, and people are told.
func (s *step) end(ctx context.Context) error {
	s.l.ended = true
	if err := s.dropLimits(ctx); err != nil {
		return err
	}
	if err := s.e.c.store.Ask(ctx, s.tx, s.l.run.ID, -1, actNext, nil); err != nil {
		return err
	}
	switch status := s.l.machine.Run().Status; status {
	case decide.Succeeded:
		s.notify(notice.Succeeded, "", "", s.targets(ctx, s.l.options.Notify.Success, s.l.graph.Opts.SuccessEmails, s.l.graph.Opts.NotifyEmails))
	case decide.Killed:
		s.notify(notice.Killed, "", s.l.machine.Run().Reason, s.failureTargets(ctx))
	default:
		s.notify(notice.Failed, "", s.failures(), s.failureTargets(ctx))
	}
	return nil
}
