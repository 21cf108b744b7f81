package floor_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestNoRowIsStranded lets producers commit late, roll back, use savepoints and prepare, while claimers split tickets and stay
// open, and markers settle and pass. Every committed job is claimed exactly once, and none stays below a mark. There is no net here:
// whatever falls below a mark is lost.
func TestNoRowIsStranded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*strand{
		"all waited for": {open: 400 * time.Millisecond, pass: time.Minute},
		"some passed":    {open: 400 * time.Millisecond, pass: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.run(t)
		})
	}
}

type strand struct {
	open time.Duration // producers' transactions, at most
	pass time.Duration

	pool      *pgxpool.Pool
	committed atomic.Int64 // jobs
	mu        sync.Mutex
	claimed   map[int64]int
}

func (s *strand) run(t *testing.T) {
	t.Helper()
	s.pool = schematest.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 24 })
	s.claimed = map[int64]int{}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	helpers, end := context.WithCancel(t.Context())
	defer end()
	var producers, others sync.WaitGroup
	var fault atomic.Pointer[error]
	guard := func(ctx context.Context, step func() error) {
		for ctx.Err() == nil {
			if err := step(); err != nil && ctx.Err() == nil {
				fault.CompareAndSwap(nil, &err)
				return
			}
		}
	}
	for n := range 8 {
		producers.Go(func() { guard(ctx, func() error { return s.produce(t.Context(), n) }) })
	}
	for range 2 {
		m := floor.NewMarker(schemaName, floor.Ready, floor.MarkerConfig{
			Pace: 5 * time.Millisecond, Look: 5 * time.Millisecond, Pass: s.pass, Worth: 1, Idle: 20 * time.Millisecond,
		})
		others.Go(func() {
			guard(helpers, func() error {
				wait, err := m.Step(helpers, s.pool)
				pause(helpers, wait)
				return err
			})
		})
	}
	for range 4 {
		tracker := floor.NewTracker(schemaName, floor.Ready, nil)
		tracker.Use("a")
		var last time.Time
		others.Go(func() {
			guard(helpers, func() error {
				if time.Since(last) > 20*time.Millisecond {
					last = time.Now()
					if err := tracker.Refresh(helpers, s.pool); err != nil {
						return err
					}
				}
				return s.claim(helpers, tracker.Mark("a", 1))
			})
		})
	}
	producers.Wait()
	committed := s.committed.Load()
	t.Cleanup(func() {
		if t.Failed() {
			s.report(t)
		}
	})
	pgtest.Eventually(t, time.Minute, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return fault.Load() != nil || int64(len(s.claimed)) >= committed
	}, "all %d jobs to be claimed", committed)
	end()
	others.Wait()
	if err := fault.Load(); err != nil {
		t.Fatal(*err)
	}
	for job, n := range s.claimed {
		if n != 1 {
			t.Fatalf("job %d was claimed %d times", job, n)
		}
	}
	if int64(len(s.claimed)) != committed {
		t.Fatalf("%d jobs were claimed, want %d", len(s.claimed), committed)
	}
	t.Logf("%d jobs", committed)
}

// report shows what a failure left behind.
func (s *strand) report(t *testing.T) {
	t.Helper()
	var left, chain string
	err := s.pool.QueryRow(context.Background(), `SELECT
		(SELECT coalesce(string_agg(r.seq || ' ' || r.job_ids::text || ' ' || r.xmin, E'\n' ORDER BY r.seq), '') FROM pelton.job_ready r),
		(SELECT string_agg(f.no || ' after ' || f.follows || ' at ' || f.at || ' settled ' || f.settled || ' from ' || coalesce(f.look_from::text, '-') || ' passed ' || coalesce(f.passed::text, '-'), E'\n' ORDER BY f.no) FROM pelton.floor f)`).Scan(&left, &chain)
	t.Logf("tickets left:\n%s\nfloor:\n%s\n%v", left, chain, err)
}

const insertTicket = `INSERT INTO pelton.job_ready (priority, line, job_ids)
	SELECT 1, 'a', array_agg(nextval('pelton.job_id_seq')) FROM generate_series(1, $1::int)`

// produce runs one transaction: a few tickets with pauses between, some under savepoints, one in ten rolled back, some prepared.
func (s *strand) produce(ctx context.Context, n int) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	do := func(sql string, args ...any) {
		if err == nil {
			_, err = conn.Exec(ctx, sql, args...)
		}
	}
	jobs := int64(0)
	do("BEGIN")
	for range 1 + rand.N(3) {
		size := 1 + rand.N(20)
		switch rand.N(4) {
		case 0: // the lock is taken and given up before it is taken for good
			do("SAVEPOINT a")
			do(insertTicket, size)
			pause(ctx, rand.N(s.open/8))
			do("ROLLBACK TO a")
		case 1:
			do("SAVEPOINT a")
			do(insertTicket, size)
			do("RELEASE a")
			jobs += int64(size)
		default:
			do(insertTicket, size)
			jobs += int64(size)
		}
		if rand.N(5) == 0 {
			pause(ctx, rand.N(s.open))
		} else {
			pause(ctx, rand.N(s.open/50))
		}
	}
	switch name := fmt.Sprintf("p%d-%d", n, rand.Int64()); {
	case rand.N(10) == 0:
		do("ROLLBACK")
		return err
	case rand.N(6) == 0:
		do("PREPARE TRANSACTION '" + name + "'")
		pause(ctx, rand.N(s.open))
		do("COMMIT PREPARED '" + name + "'")
	default:
		do("COMMIT")
	}
	if err == nil {
		s.committed.Add(jobs)
	}
	return err
}

// claim takes some jobs from the mark on, as a claim does: it puts the rest of the last ticket back under its seq, and stays open
// for a while, or rolls back.
func (s *strand) claim(ctx context.Context, mark int64) error {
	var taken []int64
	errAgain := errors.New("rolled back")
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `WITH head AS MATERIALIZED (
				SELECT ctid AS tid FROM pelton.job_ready WHERE line = 'a' AND priority = 1 AND seq >= $1
				ORDER BY seq LIMIT 3 FOR UPDATE SKIP LOCKED
			), gone AS (
				DELETE FROM pelton.job_ready WHERE ctid = ANY (ARRAY(SELECT tid FROM head)) RETURNING seq, job_ids
			), rest AS (
				INSERT INTO pelton.job_ready (seq, priority, line, job_ids) SELECT seq, 1, 'a', job_ids[5:] FROM gone
				WHERE cardinality(job_ids) > 4
			)
			SELECT unnest(job_ids[:4]) FROM gone`, mark)
		if err != nil {
			return err
		}
		if taken, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return err
		}
		pause(ctx, rand.N(5*time.Millisecond))
		if rand.N(20) == 0 {
			return errAgain
		}
		return nil
	})
	if errors.Is(err, errAgain) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(taken) == 0 {
		pause(ctx, 5*time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range taken {
		s.claimed[job]++
	}
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
