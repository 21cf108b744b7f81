package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Executor describes a process that claims.
type Executor struct {
	Name   string
	Host   string
	PID    int
	Slots  int
	Queues []string
	Kinds  []string
	Labels []string
}

// Register makes a new incarnation and returns its id.
func (s *Store) Register(ctx context.Context, on DB, e Executor) (int64, error) {
	var id int64
	err := on.QueryRow(ctx, s.sql.Get("register"),
		e.Name, e.Host, e.PID, e.Slots, notNil(e.Queues), notNil(e.Kinds), notNil(e.Labels)).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("register executor: %w", err)
	}
	return id, nil
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// Unregister says goodbye.
func (s *Store) Unregister(ctx context.Context, executor int64) error {
	if err := s.exec(ctx, "unregister", executor); err != nil {
		return fmt.Errorf("unregister executor %d: %w", executor, err)
	}
	return nil
}

// BeatResult is what a heartbeat brings back.
type BeatResult struct {
	Known     bool     // false: the executor was taken for dead, or its row is gone
	Leases    []int64  // numbers of the leases that the database has for it
	Cancelled []int64  // jobs at work whose cancel is written down
	Paused    []string // queues; '*' means all
	KindLines []string // lines of its kinds in its queues that hold something
}

// Beat is a sign of life: one statement. working are the runs at work.
func (s *Store) Beat(
	ctx context.Context, on DB, executor int64, working []RunKey, queues, kinds []string,
) (BeatResult, error) {
	var r BeatResult
	ids, runs := make([]int64, len(working)), make([]int32, len(working))
	for i, key := range working {
		ids[i], runs[i] = key.JobID, key.Run
	}
	err := s.inTime(ctx, 10*time.Second, func(ctx context.Context) error {
		return on.QueryRow(ctx, s.sql.Get("beat"), executor, len(working), ids, queues, kinds, runs).
			Scan(&r.Leases, &r.Cancelled, &r.Paused, &r.KindLines)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return BeatResult{}, nil
	}
	if err != nil {
		return BeatResult{}, fmt.Errorf("heartbeat: %w", err)
	}
	r.Known = true
	return r, nil
}

func (s *Store) inTime(ctx context.Context, limit time.Duration, run func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return run(ctx)
}
