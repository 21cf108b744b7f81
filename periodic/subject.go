package periodic

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// subject is a schedule whose row of schedule_due is locked, with all that a decision rests on.
type subject struct {
	schedule *compiled
	due      store.Due
	now      time.Time // the database's
}

var noTime time.Time

// read reads what a decision about locked schedules rests on, in the order of dues. It is a statement of its own, after the one that locked, so that
// it sees all that was committed before. broken are those that cannot be read, with the reasons: they are no error of the others.
func (c *Client) read(ctx context.Context, tx pgx.Tx, dues []store.Due) (list []*subject, broken map[int64]error, err error) {
	ids := make([]int64, len(dues))
	for i := range dues {
		ids[i] = dues[i].ID
	}
	known, versions := c.known.take(ids)
	rows, err := c.store.Read(ctx, tx, ids, versions)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[int64]*store.Read, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	broken = map[int64]error{}
	for i := range dues {
		row := byID[dues[i].ID]
		if row == nil {
			broken[dues[i].ID] = fmt.Errorf("schedule %d has no row", dues[i].ID)
			continue
		}
		compiled, err := c.compiledOf(row, known[row.ID])
		if err != nil {
			broken[row.ID] = err
			continue
		}
		list = append(list, &subject{schedule: compiled, due: dues[i], now: row.Now})
	}
	return list, broken, c.readRuns(ctx, tx, list)
}

// readRuns reads how the newest runs stand, where the rules need that.
func (c *Client) readRuns(ctx context.Context, tx pgx.Tx, list []*subject) error {
	var jobs, runs []int64
	var asked []*subject
	for _, s := range list {
		run := s.due.State.Run
		if !s.asksForRun() || !run.Live() {
			continue
		}
		asked = append(asked, s)
		if run.Job != 0 {
			jobs = append(jobs, run.Job)
		} else {
			runs = append(runs, run.Flow)
		}
	}
	jobsEnded, err := c.store.JobsEnded(ctx, tx, jobs)
	if err != nil {
		return err
	}
	runsEnded, err := c.store.RunsEnded(ctx, tx, runs)
	if err != nil {
		return err
	}
	for _, s := range asked {
		run := &s.due.State.Run
		ends, id := jobsEnded, run.Job
		if id == 0 {
			ends, id = runsEnded, run.Flow
		}
		if at, ended := ends[id]; ended {
			run.Ended, run.EndedAt = true, at
			if at.IsZero() { // nobody knows when
				run.EndedAt = s.now
			}
		}
	}
	return nil
}

// asksForRun tells whether a decision depends on how the newest run stands.
func (s *subject) asksForRun() bool {
	spec := &s.schedule.spec
	return spec.Overlap != plan.Allow || spec.Ticks == nil || !s.due.State.Waiting.IsZero()
}

// decide decides what is due now, at most about limit ticks.
func (s *subject) decide(limit int) (d *decided, err error) {
	defer s.recover(&err)
	return &decided{subject: s, step: plan.Decide(&s.schedule.spec, s.due.State, s.now, limit)}, nil
}

// recover turns a panic of a function that is the user's into an error.
func (s *subject) recover(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("schedule %q: the function that gives its times panicked: %v", s.schedule.name, p)
	}
}
