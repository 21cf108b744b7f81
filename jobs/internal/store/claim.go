package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Head is where a claim looks: a line and a priority, from its low-water mark on.
type Head struct {
	Line     string
	Priority int16
	Mark     int64
	Age      float64 // only if its first ticket entered at least so many seconds ago; 0: always
}

// ClaimParams say what to claim.
type ClaimParams struct {
	Executor   int64
	FirstLease int64 // leases get numbers from here on, one per ticket
	Heads      []Head
	Tickets    int // most tickets to lock
	Jobs       int // most jobs to take
}

// Ticket is a claimed ticket, or the part of it that was taken, under its lease.
type Ticket struct {
	Lease     int64
	ClaimedAt time.Time // by the database's clock
	EnteredAt time.Time
	Line      string
	JobIDs    []int64
	Runs      []int32 // nil: all 1
	Attempts  []int16 // counted before; nil: all 0
}

// Run is the run number of the i-th job.
func (t *Ticket) Run(i int) int32 {
	if t.Runs == nil {
		return 1
	}
	return t.Runs[i]
}

// Attempt is the number of attempts of the i-th job counted before this run.
func (t *Ticket) Attempt(i int) int16 {
	if t.Attempts == nil {
		return 0
	}
	return t.Attempts[i]
}

// claimLimits: a claim waits for nobody, and reads the line by its index alone.
var claimLimits = Limits{Lock: 500 * time.Millisecond, Statement: 10 * time.Second, NoSeqScan: true}

// Claim hands out the first jobs of the given heads. After an error that leaves the commit open (see Unsure), the leases may
// exist: the heartbeat finds them and hands them back.
func (s *Store) Claim(ctx context.Context, p ClaimParams) ([]Ticket, error) {
	lines, priorities, marks, ages := headColumns(p.Heads)
	var tickets []Ticket
	err := s.pipeline(ctx, claimLimits, func(b *pgx.Batch) {
		b.Queue(s.sql.Get("claim"), p.Executor, p.FirstLease, lines, priorities, marks, ages, p.Tickets, p.Jobs).
			Query(func(rows pgx.Rows) (err error) {
				tickets, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Ticket])
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return tickets, nil
}

func headColumns(heads []Head) (lines []string, priorities []int16, marks []int64, ages []float64) {
	for _, h := range heads {
		lines = append(lines, h.Line)
		priorities = append(priorities, h.Priority)
		marks = append(marks, h.Mark)
		ages = append(ages, h.Age)
	}
	return lines, priorities, marks, ages
}
