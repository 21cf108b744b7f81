package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// Place is where a job belongs when it is ready.
type Place struct {
	Line     string
	Priority int16
}

// Places reads where jobs belong. Jobs without a row are left out.
func (s *Store) Places(ctx context.Context, db DB, ids []int64) (map[int64]Place, error) {
	rows, err := s.byIDs(ctx, db, "places", ids)
	if err != nil {
		return nil, fmt.Errorf("read where jobs belong: %w", err)
	}
	places := make(map[int64]Place, len(ids))
	var id int64
	var p Place
	if _, err := pgx.ForEachRow(rows, []any{&id, &p.Line, &p.Priority}, func() error {
		places[id] = p
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read where jobs belong: %w", err)
	}
	return places, nil
}

// HandBackLeases ends the runs of leases that nobody works, uncounted, and puts their jobs back into the line. Only runs that
// nobody ended meanwhile go back. It returns the lines they may be in.
func (s *Store) HandBackLeases(ctx context.Context, on Session, executor int64, numbers []int64) (lines []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // the heartbeat waits for it
	defer cancel()
	err = txOn(ctx, on, finishLimits, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.Get("take_leases"), executor, numbers)
		if err != nil {
			return err
		}
		leases, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Ticket])
		if err != nil || len(leases) == 0 {
			return err
		}
		results, err := s.returned(ctx, tx, leases)
		if err != nil {
			return err
		}
		for _, r := range results {
			if !slices.Contains(lines, r.Line) {
				lines = append(lines, r.Line)
			}
		}
		_, err = s.insertAttempts(ctx, tx, executor, results)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("hand back leases %v: %w", numbers, err)
	}
	return lines, nil
}

// WakeSleepers hints at work in lines if somebody sleeps there, once the work is committed.
func (s *Store) WakeSleepers(ctx context.Context, on DB, lines []string) error {
	if _, err := on.Exec(ctx, s.sql.Get("wake"), lines); err != nil {
		return fmt.Errorf("hint at work: %w", err)
	}
	return nil
}

// returned makes uncounted results of all runs of leases, sorted by key.
func (s *Store) returned(ctx context.Context, db DB, leases []Ticket) ([]*Result, error) {
	var results []*Result
	var ids []int64
	for i := range leases {
		l := &leases[i]
		for k, id := range l.JobIDs {
			ids = append(ids, id)
			results = append(results, &Result{
				JobID: id, Run: l.Run(k), Attempt: l.Attempt(k), Outcome: state.Returned, EndedAt: l.ClaimedAt,
			})
		}
	}
	places, err := s.Places(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	results = slices.DeleteFunc(results, func(r *Result) bool {
		p, found := places[r.JobID]
		r.Line, r.Priority = p.Line, p.Priority
		return !found
	})
	sortResults(results)
	return results, nil
}

// DueHint is the payload that tells movers of a run due soon.
const DueHint = "due:"

// FlowHint is the payload that tells whoever advances flows that there is something to do.
const FlowHint = "flow:"

// ScheduleHint is the payload that tells whoever fires schedules that one is due sooner than before.
const ScheduleHint = "schedule:"

// HintDue tells movers of a run due soon, in db's transaction if it is one.
func (s *Store) HintDue(ctx context.Context, db DB) error {
	if _, err := db.Exec(ctx, s.sql.Get("hint_due")); err != nil {
		return fmt.Errorf("hint at a job due soon: %w", err)
	}
	return nil
}

// Hint wakes whoever listens on a line, asleep or not: for rare events.
func (s *Store) Hint(ctx context.Context, payloads []string) error {
	return s.HintOn(ctx, s.Pool, payloads)
}

// HintOn is Hint in db's transaction, if it is one.
func (s *Store) HintOn(ctx context.Context, db DB, payloads []string) error {
	if _, err := db.Exec(ctx, s.sql.Get("hint"), payloads); err != nil {
		return fmt.Errorf("send hints: %w", err)
	}
	return nil
}
