package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepLimits are short: what somebody holds is left for the next round.
var sweepLimits = Limits{Lock: 50 * time.Millisecond, Statement: 30 * time.Second}

// AnythingToSweep tells whether there are any voids and any unique keys. One statement.
func (s *Store) AnythingToSweep(ctx context.Context) (voids, keys bool, err error) {
	if err := s.Pool.QueryRow(ctx, s.sql.Get("anything_to_sweep")).Scan(&voids, &keys); err != nil {
		return false, false, fmt.Errorf("look for what to sweep: %w", err)
	}
	return voids, keys, nil
}

// SweepKeys gives up those of the next n unique keys after a key whose jobs hold them no longer. It returns how many, and the
// last key looked at, nil at the end.
func (s *Store) SweepKeys(ctx context.Context, after []byte, n int) (freed int, last []byte, err error) {
	if after == nil {
		after = []byte{}
	}
	err = s.Tx(ctx, sweepLimits, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.sql.Get("sweep_keys"), after, n).Scan(&freed, &last)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("sweep unique keys: %w", err)
	}
	return freed, last, nil
}

// placed is a ticket with its place in the line.
type placed struct {
	Seq       int64
	EnteredAt time.Time
	Priority  int16
	Line      string
	JobIDs    []int64
	Runs      []int32
	Attempts  []int16
}

// EndVoided ends the voided runs of up to n tickets that stood in the line for longer than grace after they were voided: in
// lines that are paused, or that nobody works. It returns how many runs it ended.
func (s *Store) EndVoided(ctx context.Context, grace time.Duration, n int) (int, error) {
	var done []Honoured
	err := s.Tx(ctx, sweepLimits, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.Get("take_voided"), grace.Seconds(), n)
		if err != nil {
			return err
		}
		tickets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[placed])
		if err != nil || len(tickets) == 0 {
			return err
		}
		done, err = s.endVoided(ctx, tx, tickets)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("end voided runs in the line: %w", err)
	}
	return len(done), s.DropVoids(ctx, done)
}

// endVoided ends the voided runs of tickets taken in this transaction and puts the others back.
func (s *Store) endVoided(ctx context.Context, tx pgx.Tx, tickets []placed) ([]Honoured, error) {
	var runs []VoidedRun
	for _, t := range tickets {
		for i := range t.JobIDs {
			runs = append(runs, t.run(i))
		}
	}
	// Runs without a void come back as VoidNone.
	honoured, err := s.honourVoids(ctx, tx, runs)
	if err != nil {
		return nil, err
	}
	stays := map[RunKey]bool{}
	var done []Honoured
	for _, h := range honoured {
		if h.Outcome == VoidNone {
			stays[RunKey{h.JobID, h.Run}] = true
		} else {
			done = append(done, h)
		}
	}
	for _, t := range tickets {
		rest := t.only(stays)
		if len(rest.JobIDs) == 0 {
			continue
		}
		_, err := tx.Exec(ctx, s.sql.Get("put_back"), rest.Seq, rest.EnteredAt, rest.Priority, rest.Line, rest.JobIDs, rest.Runs, rest.Attempts)
		if err != nil {
			return nil, fmt.Errorf("put the rest of a ticket back: %w", err)
		}
	}
	return done, nil
}

// run is the i-th run of a ticket.
func (t *placed) run(i int) VoidedRun {
	r := VoidedRun{JobID: t.JobIDs[i], Run: 1}
	if t.Runs != nil {
		r.Run = t.Runs[i]
	}
	if t.Attempts != nil {
		r.Attempts = t.Attempts[i]
	}
	return r
}

// only is the ticket with those runs only.
func (t *placed) only(stays map[RunKey]bool) placed {
	rest := *t
	rest.JobIDs, rest.Runs, rest.Attempts = nil, nil, nil
	for i := range t.JobIDs {
		r := t.run(i)
		if !stays[RunKey{r.JobID, r.Run}] {
			continue
		}
		rest.JobIDs = append(rest.JobIDs, r.JobID)
		if t.Runs != nil {
			rest.Runs = append(rest.Runs, r.Run)
		}
		if t.Attempts != nil {
			rest.Attempts = append(rest.Attempts, r.Attempts)
		}
	}
	return rest
}
