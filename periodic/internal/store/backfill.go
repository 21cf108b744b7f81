package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// BackfillRow is a backfill as people see it.
type BackfillRow struct {
	ID         int64
	Schedule   string
	CreatedAt  time.Time
	EndedAt    *time.Time
	From, To   time.Time
	Parallel   int
	OnlyMissed bool
	Total      int
	Started    int
	LeftOut    int
	Succeeded  int
	Failed     int
	Status     string
	CreatedBy  string
	Live       int
	NotStarted int
	Why        *string
}

// Backfills reads backfills of a schedule (empty: of all), or one by its id (0: any).
func (s *Store) Backfills(ctx context.Context, db DB, schedule string, id, before int64, limit int) ([]BackfillRow, error) {
	return all[BackfillRow](ctx, s, db, "backfills", nullText(schedule), nullID(id), limit, nullID(before))
}

// Backfill is one that is locked.
type Backfill struct {
	ID         int64
	Schedule   int64
	From, To   time.Time
	Decided    time.Time
	Parallel   int
	OnlyMissed bool
	Status     string
	Wake       *time.Time
}

// States of backfills.
const (
	BackfillRunning   = "running"
	BackfillCompleted = "completed"
	BackfillCancelled = "cancelled"
)

// LockBackfill locks a backfill; nil: there is none.
func (s *Store) LockBackfill(ctx context.Context, tx pgx.Tx, id int64) (*Backfill, error) {
	rows, err := all[Backfill](ctx, s, tx, "backfill_lock", id)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// NextBackfill takes the backfill that is due first, and locks its schedule; zeros: none is due, or others are at it.
func (s *Store) NextBackfill(ctx context.Context, tx pgx.Tx, codes []string) (id, schedule int64, err error) {
	type next struct{ ID, Schedule int64 }
	rows, err := all[next](ctx, s, tx, "backfill_next", codes)
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	return rows[0].ID, rows[0].Schedule, nil
}

// BackfillDue is how long it is until a backfill is due; false: none is.
func (s *Store) BackfillDue(ctx context.Context, codes []string) (time.Duration, bool, error) {
	var in *int64
	if err := s.Pool.QueryRow(ctx, s.sql.Get("backfill_wait"), codes).Scan(&in); err != nil {
		return 0, false, fmt.Errorf("read when the next backfill is due: %w", err)
	}
	if in == nil {
		return 0, false, nil
	}
	return time.Duration(*in) * time.Microsecond, true, nil
}

// AddBackfill stores a backfill of a schedule that is locked.
func (s *Store) AddBackfill(ctx context.Context, tx pgx.Tx, b Backfill, total int, by string) (id int64, err error) {
	err = tx.QueryRow(ctx, s.sql.Get("backfill_add"), b.Schedule, b.From, b.To, b.Parallel, total, b.OnlyMissed, by).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("store a backfill: %w", err)
	}
	return id, nil
}

// Progress is what a step of a backfill did.
type Progress struct {
	Decided                             time.Time
	Started, LeftOut, Succeeded, Failed int
	NotStarted                          int    // of those left out: could not be started
	Why                                 string // why the last of these could not; "": as before
	Status                              string
	Again                               *time.Duration // when to look at it again; nil: never
}

// WriteBackfill stores how far a backfill is that is locked.
func (s *Store) WriteBackfill(ctx context.Context, tx pgx.Tx, id int64, p Progress) error {
	var again *float64
	if p.Again != nil {
		seconds := p.Again.Seconds()
		again = &seconds
	}
	return s.exec(ctx, tx, "backfill_write", id, p.Decided, p.Started, p.LeftOut, p.Succeeded, p.Failed, again, p.Status, p.NotStarted, nullText(p.Why))
}

// BackfillLive is a run of a backfill that is not yet counted.
type BackfillLive struct {
	Tick  time.Time
	Since *time.Time
	Ended bool
	Well  bool
}

// BackfillLive reads the runs of a backfill that are not yet counted.
func (s *Store) BackfillLive(ctx context.Context, tx pgx.Tx, id int64) ([]BackfillLive, error) {
	return all[BackfillLive](ctx, s, tx, "backfill_live", pgx.QueryExecModeCacheDescribe, id)
}

// Counted forgets runs that have ended.
func (s *Store) Counted(ctx context.Context, tx pgx.Tx, id int64, ticks []time.Time) error {
	return s.exec(ctx, tx, "backfill_counted", id, ticks)
}

// Begun notes runs that were started.
func (s *Store) Begun(ctx context.Context, tx pgx.Tx, id int64, started []Tick) error {
	ticks, jobs, runs := make([]time.Time, len(started)), make([]*int64, len(started)), make([]*int64, len(started))
	for i := range started {
		ticks[i], jobs[i], runs[i] = started[i].At, nullID(started[i].Job), nullID(started[i].Run)
	}
	return s.exec(ctx, tx, "backfill_begun", id, ticks, jobs, runs)
}

// TickSeen is what there is at a time of a schedule.
type TickSeen struct {
	At    time.Time
	LastN int
	Fired bool
}

// TicksSeen reads what there is at these times of a schedule.
func (s *Store) TicksSeen(ctx context.Context, tx pgx.Tx, schedule int64, times []time.Time) ([]TickSeen, error) {
	return all[TickSeen](ctx, s, tx, "ticks_fired", pgx.QueryExecModeCacheDescribe, schedule, times)
}

// PutOffBackfill puts a backfill off that could not be advanced.
func (s *Store) PutOffBackfill(ctx context.Context, id int64, by time.Duration) error {
	return s.exec(ctx, s.Pool, "backfill_put_off", id, by.Seconds())
}
