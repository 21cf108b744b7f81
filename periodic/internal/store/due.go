package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/plan"
)

// Due is a row of schedule_due: where a schedule is.
type Due struct {
	ID       int64
	State    plan.State
	Failures int
}

// dueRow is one as it lies in the table.
type dueRow struct {
	ID        int64
	Next      *time.Time
	Decided   time.Time
	Cut       *time.Time
	CutUntil  *time.Time
	Waiting   *time.Time
	LiveJob   *int64
	LiveRun   *int64
	LiveSince *time.Time
	Paused    bool
	Failures  int16
}

func (r *dueRow) due() Due {
	return Due{ID: r.ID, Failures: int(r.Failures), State: plan.State{
		Decided: r.Decided, Next: at(r.Next), Cut: at(r.Cut), CutUntil: at(r.CutUntil), Pause: r.Paused, Waiting: at(r.Waiting),
		Run: plan.Run{Job: value(r.LiveJob), Flow: value(r.LiveRun), Since: at(r.LiveSince)},
	}}
}

func dues(rows []dueRow, err error) ([]Due, error) {
	list := make([]Due, len(rows))
	for i := range rows {
		list[i] = rows[i].due()
	}
	return list, err
}

// Claim locks at most n schedules that are due: those that only this process can fire first, which are few, and then others, from the floor on.
func (s *Store) Claim(ctx context.Context, tx pgx.Tx, floor int64, codes []string, n int) (own []Due, err error) {
	if len(codes) > 0 {
		if own, err = dues(all[dueRow](ctx, s, tx, "claim_own", codes, n)); err != nil || len(own) == n {
			return own, err
		}
	}
	others, err := dues(all[dueRow](ctx, s, tx, "claim", floor, n-len(own)))
	return append(own, others...), err
}

// Lock locks schedules, due or not.
func (s *Store) Lock(ctx context.Context, tx pgx.Tx, ids ...int64) ([]Due, error) {
	return dues(all[dueRow](ctx, s, tx, "lock", ids))
}

// Next is what an idle firer wants to know.
type Next struct {
	Any    bool
	In     time.Duration // until the next schedule is due; not above zero: one is
	Newest int64         // row of floor
}

// NextDue reads when the next schedule is due.
func (s *Store) NextDue(ctx context.Context, floor int64, codes []string) (Next, error) {
	var in *int64
	var next Next
	if err := s.Pool.QueryRow(ctx, s.sql.Get("next"), floor, codes).Scan(&in, &next.Newest); err != nil {
		return Next{}, fmt.Errorf("read when the next schedule is due: %w", err)
	}
	if in != nil {
		next.Any, next.In = true, time.Duration(min(*in, math.MaxInt64/1000))*time.Microsecond
	}
	return next, nil
}

// Read is what a schedule's row says.
type Read struct {
	ID        int64
	Version   int
	Name      string
	Owner     string
	Code      bool
	CreatedAt time.Time
	Paused    bool
	Spec      *string // nil: the one known
	Now       time.Time
}

// Read reads schedules that are locked. versions are those whose specs are known; 0: none is.
func (s *Store) Read(ctx context.Context, tx pgx.Tx, ids []int64, versions []int32) ([]Read, error) {
	return all[Read](ctx, s, tx, "read", ids, versions)
}

// ended is a run that has ended. At may be missing.
type ended struct {
	ID int64
	At *time.Time
}

// JobsEnded tells which jobs have ended, and when; the zero time: nobody knows.
//
// It is planned anew each time, for the range of ids, so that partitions are pruned and a generic plan does not lock them all.
func (s *Store) JobsEnded(ctx context.Context, db DB, ids []int64) (map[int64]time.Time, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return byID(all[ended](ctx, s, db, "jobs_ended", pgx.QueryExecModeCacheDescribe, ids, slices.Min(ids), slices.Max(ids)))
}

// RunsEnded is JobsEnded for runs of flows.
func (s *Store) RunsEnded(ctx context.Context, db DB, ids []int64) (map[int64]time.Time, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return byID(all[ended](ctx, s, db, "runs_ended", ids))
}

func byID(list []ended, err error) (map[int64]time.Time, error) {
	m := make(map[int64]time.Time, len(list))
	for _, e := range list {
		m[e.ID] = at(e.At)
	}
	return m, err
}

// Written is where a schedule is now, and when to look at it again; the zero time: never.
type Written struct {
	Due
	Wake time.Time
}

// WriteDue stores where schedules are, whose rows must be locked.
func (s *Store) WriteDue(ctx context.Context, tx pgx.Tx, list []Written) error {
	n := len(list)
	if n == 0 {
		return nil
	}
	ids, decided, paused, failures := make([]int64, n), make([]time.Time, n), make([]bool, n), make([]int16, n)
	wake, next, cut, until := make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n), make([]*time.Time, n)
	waiting, since := make([]*time.Time, n), make([]*time.Time, n)
	liveJob, liveRun := make([]*int64, n), make([]*int64, n)
	for i := range list {
		w := &list[i]
		t := &w.State
		ids[i], decided[i], paused[i], failures[i] = w.ID, t.Decided, t.Pause, int16(min(w.Failures, 1000))
		wake[i], next[i], cut[i], until[i] = null(w.Wake), null(t.Next), null(t.Cut), null(t.CutUntil)
		waiting[i], since[i] = null(t.Waiting), null(t.Run.Since)
		liveJob[i], liveRun[i] = nullID(t.Run.Job), nullID(t.Run.Flow)
	}
	return s.exec(ctx, tx, "write_due", ids, wake, next, decided, cut, until, waiting, liveJob, liveRun, since, paused, failures)
}

// PutOff puts schedules off that could not be fired: by a time that doubles with every failure in a row.
func (s *Store) PutOff(ctx context.Context, db DB, ids []int64, by time.Duration) error {
	slices.Sort(ids)
	return s.exec(ctx, db, "put_off", ids, by.Seconds())
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func null(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func value(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

func nullID(id int64) *int64 {
	if id == 0 {
		return nil
	}
	return &id
}
