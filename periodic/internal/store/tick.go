package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tick is a row of schedule_tick: what became of a tick. Empty texts and zero ids are NULL.
type Tick struct {
	Schedule int64
	At       time.Time
	Job      int64
	Run      int64 // of a flow
	Backfill int64
	N        int
	Source   string
	Outcome  string
	Reason   string
	Note     string
	Wall     time.Time // coded as UTC; the zero time: none
	Actor    string
}

// What ticks come from, and what becomes of them.
const (
	SourceClock    = "clock"
	SourceTrigger  = "trigger"
	SourceBackfill = "backfill"

	Fired   = "fired"
	Skipped = "skipped"
	Failed  = "failed"
)

// WriteTicks stores what became of ticks. An error of SQLSTATE 23505: one has its row already.
func (s *Store) WriteTicks(ctx context.Context, tx pgx.Tx, list []Tick) error {
	n := len(list)
	if n == 0 {
		return nil
	}
	schedules, times, numbers := make([]int64, n), make([]time.Time, n), make([]int32, n)
	jobs, runs, backfills := make([]*int64, n), make([]*int64, n), make([]*int64, n)
	sources, outcomes := make([]string, n), make([]string, n)
	reasons, notes, actors, walls := make([]*string, n), make([]*string, n), make([]*string, n), make([]*time.Time, n)
	for i := range list {
		t := &list[i]
		schedules[i], times[i], numbers[i] = t.Schedule, t.At, int32(t.N) //nolint:gosec // a handful
		jobs[i], runs[i], backfills[i] = nullID(t.Job), nullID(t.Run), nullID(t.Backfill)
		sources[i], outcomes[i] = t.Source, t.Outcome
		reasons[i], notes[i], actors[i], walls[i] = nullText(t.Reason), nullText(t.Note), nullText(t.Actor), null(t.Wall)
	}
	return s.exec(ctx, tx, "write_ticks", schedules, times, jobs, runs, backfills, numbers, sources, outcomes, reasons, notes, walls, actors)
}

// LastN is the greatest n of a schedule's ticks at a time.
func (s *Store) LastN(ctx context.Context, tx pgx.Tx, schedule int64, at time.Time) (n int, err error) {
	if err := tx.QueryRow(ctx, s.sql.Get("last_n"), pgx.QueryExecModeCacheDescribe, schedule, at).Scan(&n); err != nil {
		return 0, fmt.Errorf("number a tick: %w", err)
	}
	return n, nil
}

// TickKey names a schedule's tick.
type TickKey struct {
	At time.Time
	N  int
}

// TicksKnown tells which ticks of a schedule at these times have their rows already.
func (s *Store) TicksKnown(ctx context.Context, tx pgx.Tx, schedule int64, times []time.Time) ([]TickKey, error) {
	return all[TickKey](ctx, s, tx, "ticks_known", pgx.QueryExecModeCacheDescribe, schedule, times)
}

func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
