package periodic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Reasons of ticks that did not run, beside those that plan decides.
const (
	reasonDuplicate = "duplicate" // its job is unique, and another one has its key
	reasonNone      = "none"      // the function that makes the job made none
	reasonDeleted   = "deleted"   // its schedule was deleted while it waited
)

// decided is what was decided of a schedule.
type decided struct {
	*subject
	step  plan.Step
	actor string // of ticks by hand

	starts []*start
	ticks  []store.Tick
	putOff error // it could not be fired; nothing of it is stored
}

// start is one verdict that fires.
type start struct {
	at   time.Time
	tick int // its place in ticks
	job  *job
	id   int64 // of the job or the run
}

// aftermath is what is to be done when a transaction has been committed.
type aftermath struct {
	fired  int
	flows  bool // runs of flows were started
	cancel []cancel
	ticks  []Verdict // that were decided
}

// cancel is a run to be cancelled because a newer tick waits for its end.
type cancel struct {
	schedule string
	run      plan.Run
}

// apply turns decisions into rows, in the transaction that holds the schedules' locks: jobs and runs of flows, ticks, and where the schedules are now.
// It is the only way in which that happens. A refused target is a tick that failed. Of the schedules that cannot be fired now nothing is stored
// but that they are put off.
func (c *Client) apply(ctx context.Context, tx pgx.Tx, list []*decided) (aftermath, error) {
	for _, d := range list {
		d.prepare()
	}
	if len(list) == 1 {
		if err := c.dropKnown(ctx, tx, list[0]); err != nil {
			return aftermath{}, err
		}
	}
	if err := c.startJobs(ctx, tx, list); err != nil {
		return aftermath{}, err
	}
	after, err := c.startFlows(ctx, tx, list)
	if err != nil {
		return aftermath{}, err
	}
	return after, c.write(ctx, tx, list, &after)
}

// prepare makes the rows of the verdicts, as if all could be started, and finds what is to be started.
func (d *decided) prepare() {
	d.starts, d.ticks, d.putOff = nil, nil, nil
	for _, v := range d.step.Verdicts {
		t := d.row(v.Tick)
		t.Source, t.Outcome, t.Reason = store.SourceClock, store.Skipped, string(v.Reason)
		if v.Hand {
			t.Source, t.Actor, t.N = store.SourceTrigger, d.actor, nextFree
		}
		if v.Fire {
			t.Outcome = store.Fired
			d.starts = append(d.starts, &start{at: v.Tick.At, tick: len(d.ticks)})
		}
		d.ticks = append(d.ticks, t)
	}
}

// row is the row of a tick of which nothing is decided.
func (d *decided) row(t tick.Tick) store.Tick {
	r := store.Tick{Schedule: d.schedule.id, At: t.At, N: t.N, Note: string(t.Note), Wall: t.Local}
	if t.Local.Equal(onTheWall(t.At.In(d.schedule.zone))) {
		r.Wall = time.Time{} // that is what the clock shows
	}
	return r
}

// nextFree is the number of a tick that gets one when it is written.
const nextFree = -1

// dropKnown takes out of the decision about a single schedule what has a row already. That cannot be, unless the database's clock stepped back
// between two changes of the schedule, or somebody wrote rows: a batch fails then, and its schedules are taken one by one.
func (c *Client) dropKnown(ctx context.Context, tx pgx.Tx, d *decided) error {
	if len(d.ticks) == 0 {
		return nil
	}
	times := make([]time.Time, len(d.ticks))
	for i := range d.ticks {
		times[i] = d.ticks[i].At
	}
	known, err := c.store.TicksKnown(ctx, tx, d.schedule.id, times)
	if err != nil || len(known) == 0 {
		return err
	}
	taken := map[store.TickKey]bool{}
	for _, k := range known {
		taken[store.TickKey{At: k.At.UTC(), N: k.N}] = true
	}
	has := func(t *store.Tick) bool { return taken[store.TickKey{At: t.At.UTC(), N: t.N}] }
	for i := range d.ticks {
		if t := &d.ticks[i]; t.N > 0 && has(t) {
			t.N = nextFree
		}
	}
	d.starts = slices.DeleteFunc(d.starts, func(s *start) bool { return has(&d.ticks[s.tick]) })
	for i := range d.ticks {
		if has(&d.ticks[i]) {
			d.ticks[i].Outcome = "" // not written
		}
	}
	return nil
}

// refuse has a tick end as failed.
func (d *decided) refuse(s *start, err error) { d.end(s, store.Failed, ReasonRefused, words(err)) }

func (d *decided) end(s *start, outcome, reason, note string) {
	t := &d.ticks[s.tick]
	t.Outcome, t.Reason, t.Note = outcome, reason, note
	s.job, s.id = nil, 0
}

// started notes that a tick has started a job or a run.
func (d *decided) started(s *start, job, run int64) {
	t := &d.ticks[s.tick]
	t.Job, t.Run, s.id = job, run, cmp.Or(job, run)
}

// startJobs enqueues the jobs of all ticks, in one insert if none is at fault.
func (c *Client) startJobs(ctx context.Context, tx pgx.Tx, list []*decided) error {
	var with []*decided
	for _, d := range list {
		if d.schedule.schedule.Flow == nil && len(d.starts) > 0 {
			d.makeJobs()
			with = append(with, d)
		}
	}
	return c.insert(ctx, tx, with)
}

// makeJobs makes the jobs to be enqueued.
func (d *decided) makeJobs() {
	for _, s := range d.starts {
		j, err := d.schedule.jobAt(s.at, d.ticks[s.tick].Backfill)
		switch {
		case err != nil:
			d.refuse(s, err)
		case j == nil:
			d.end(s, store.Skipped, reasonNone, "")
		default:
			s.job = j
		}
	}
}

// insert enqueues the jobs of some schedules under a savepoint. If that fails they are halved until the one at fault is alone.
func (c *Client) insert(ctx context.Context, tx pgx.Tx, list []*decided) error {
	if len(list) == 0 {
		return nil
	}
	failure, err := savepoint(ctx, tx, func(tx pgx.Tx) error { return c.insertAll(ctx, tx, list) })
	if err != nil || failure == nil {
		return err
	}
	if len(list) == 1 {
		return c.insertApart(ctx, tx, list[0])
	}
	half := len(list) / 2
	if err := c.insert(ctx, tx, list[:half]); err != nil {
		return err
	}
	return c.insert(ctx, tx, list[half:])
}

// insertAll enqueues jobs in one insert, or as many as it takes to find those that the queue refuses by looking at them.
func (c *Client) insertAll(ctx context.Context, tx pgx.Tx, list []*decided) error {
	type origin struct {
		d *decided
		s *start
	}
	for {
		var params []river.InsertManyParams
		var origins []origin
		for _, d := range list {
			for _, s := range d.starts {
				if s.job != nil {
					params = append(params, river.InsertManyParams{Args: s.job.args, InsertOpts: s.job.opts})
					origins = append(origins, origin{d, s})
				}
			}
		}
		results, err := c.jobs.InsertManyTx(ctx, tx, params)
		if invalid, ok := errors.AsType[*jobs.InvalidJobError](err); ok && invalid.Index < len(origins) {
			o := origins[invalid.Index]
			o.d.refuse(o.s, invalid.Err)
			continue
		}
		if err != nil {
			return err
		}
		for i, r := range results {
			o := origins[i]
			if r.UniqueSkippedAsDuplicate {
				o.d.end(o.s, store.Skipped, reasonDuplicate, fmt.Sprintf("job %d has its unique key", r.Job.ID))
				continue
			}
			o.d.started(o.s, r.Job.ID, 0)
		}
		return nil
	}
}

// insertApart enqueues the jobs of one schedule one by one. Those that cannot be stored are refused; any other error puts the schedule off, with all
// of its ticks.
func (c *Client) insertApart(ctx context.Context, tx pgx.Tx, d *decided) error {
	d.prepareAgain()
	d.makeJobs()
	failure, err := savepoint(ctx, tx, func(tx pgx.Tx) error {
		for _, s := range d.starts {
			if s.job == nil {
				continue
			}
			one := &decided{subject: d.subject, ticks: d.ticks, starts: []*start{s}}
			failure, err := savepoint(ctx, tx, func(tx pgx.Tx) error { return c.insertAll(ctx, tx, []*decided{one}) })
			if err != nil {
				return err
			}
			if failure != nil && !store.RowFault(failure) {
				return failure
			}
			if failure != nil {
				d.refuse(s, failure)
			}
		}
		return nil
	})
	d.putOff = failure
	return err
}

// prepareAgain takes back what an insert that was rolled back has noted.
func (d *decided) prepareAgain() {
	for _, s := range d.starts {
		t := &d.ticks[s.tick]
		t.Outcome, t.Reason, t.Job, t.Run, s.id = store.Fired, "", 0, 0, 0
	}
}

// startFlows starts the runs of flows: those of a schedule under a savepoint, in the order of their projects, which it locks.
func (c *Client) startFlows(ctx context.Context, tx pgx.Tx, list []*decided) (after aftermath, err error) {
	var with []*decided
	for _, d := range list {
		if d.schedule.schedule.Flow != nil && len(d.starts) > 0 {
			with = append(with, d)
		}
	}
	slices.SortStableFunc(with, func(a, b *decided) int {
		return cmp.Compare(a.schedule.schedule.Flow.Project, b.schedule.schedule.Flow.Project)
	})
	held := map[string]error{} // projects that somebody else's transaction holds: waited for once
	for _, d := range with {
		project := d.schedule.schedule.Flow.Project
		if d.putOff = held[project]; d.putOff != nil {
			continue
		}
		failure, err := savepoint(ctx, tx, func(tx pgx.Tx) error {
			for _, s := range d.starts {
				if err := c.startFlow(ctx, tx, d, s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return aftermath{}, err
		}
		if store.SQLState(failure) == store.LockNotAvailable {
			held[project] = failure
		}
		d.putOff = failure
		after.flows = after.flows || failure == nil
	}
	return after, nil
}

// startFlow starts one run. An error is one that another try may not meet.
func (c *Client) startFlow(ctx context.Context, tx pgx.Tx, d *decided, s *start) error {
	if c.flows == nil {
		d.refuse(s, errors.New("this scheduler knows no flows"))
		return nil
	}
	var run int64
	failure, err := savepoint(ctx, tx, func(tx pgx.Tx) (err error) {
		ctx := jobs.WithActor(ctx, actorOf(d.schedule.name))
		run, err = c.flows.RunTx(ctx, tx, d.schedule.runAt(s.at))
		return err
	})
	if err != nil {
		return err
	}
	switch invalid, wrong := errors.AsType[*flow.InvalidOptionsError](failure); {
	case failure == nil:
		d.started(s, 0, run)
	case errors.Is(failure, flow.ErrRunning):
		d.end(s, store.Skipped, string(plan.Overlapped), words(failure))
	case wrong:
		d.refuse(s, invalid)
	case errors.Is(failure, flow.ErrNotFound), store.RowFault(failure):
		d.refuse(s, failure)
	default:
		return failure
	}
	return nil
}

// actorOf is who starts and cancels runs for a schedule, in the audit.
func actorOf(schedule string) string { return "schedule " + schedule }

// write stores the ticks and where the schedules are now.
func (c *Client) write(ctx context.Context, tx pgx.Tx, list []*decided, after *aftermath) error {
	var ticks []store.Tick
	var dues []store.Written
	var off []int64
	for _, d := range list {
		if d.putOff != nil {
			c.log.WarnContext(ctx, "a schedule could not be fired and is put off", "schedule", d.schedule.name, "error", d.putOff)
			off = append(off, d.schedule.id)
			continue
		}
		if err := c.number(ctx, tx, d); err != nil {
			return err
		}
		for i := range d.ticks {
			if d.ticks[i].Outcome != "" {
				ticks = append(ticks, d.ticks[i])
				after.add(&d.ticks[i], d.now)
			}
		}
		dues = append(dues, d.written(after))
	}
	if err := c.store.WriteTicks(ctx, tx, ticks); err != nil {
		return err
	}
	if err := c.store.WriteDue(ctx, tx, dues); err != nil {
		return err
	}
	if len(off) == 0 {
		return nil
	}
	return c.store.PutOff(ctx, tx, off, c.config.putOff)
}

// number gives numbers to ticks that are not the clock's.
func (c *Client) number(ctx context.Context, tx pgx.Tx, d *decided) error {
	for i := range d.ticks {
		t := &d.ticks[i]
		if t.N != nextFree {
			continue
		}
		n, err := c.store.LastN(ctx, tx, t.Schedule, t.At)
		if err != nil {
			return err
		}
		for k := range d.ticks[:i] {
			if d.ticks[k].At.Equal(t.At) {
				n = max(n, d.ticks[k].N)
			}
		}
		t.N = n + 1
	}
	return nil
}

// written is where a schedule is now.
func (d *decided) written(after *aftermath) store.Written {
	state := d.step.State
	if d.step.Cancel && d.step.State.Run.Live() {
		after.cancel = append(after.cancel, cancel{d.schedule.name, d.step.State.Run})
	}
	if len(d.starts) > 0 {
		state.Run = plan.Run{}
	}
	for _, s := range d.starts {
		if s.id == 0 {
			continue
		}
		after.fired++
		t := &d.ticks[s.tick]
		state.Run = plan.Run{Job: t.Job, Flow: t.Run, Since: d.now}
	}
	return store.Written{Due: store.Due{ID: d.schedule.id, State: state}, Wake: d.step.Wake}
}

// savepoint runs fn under a savepoint, which is rolled back if it fails. failure is fn's error; err is one after which the transaction is lost.
func savepoint(ctx context.Context, tx pgx.Tx, fn func(tx pgx.Tx) error) (failure, err error) {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("begin a savepoint: %w", err)
	}
	if failure = fn(inner); failure != nil {
		if err := inner.Rollback(ctx); err != nil {
			return nil, errors.Join(failure, fmt.Errorf("roll back to a savepoint: %w", err))
		}
		return failure, nil
	}
	if err := inner.Commit(ctx); err != nil {
		return nil, fmt.Errorf("release a savepoint: %w", err)
	}
	return nil, nil
}
