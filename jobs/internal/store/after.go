package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// The steps after a finish has committed, each a statement of its own.

// DeleteLeases deletes used-up leases of an executor.
func (s *Store) DeleteLeases(ctx context.Context, executor int64, numbers []int64) error {
	if err := s.exec(ctx, "delete_leases", executor, numbers); err != nil {
		return fmt.Errorf("delete used-up leases: %w", err)
	}
	return nil
}

// FreeKeys frees the unique keys of jobs that ended with these outcomes, where the key's states leave the outcome out
// and the job is not live again. It waits for nobody.
func (s *Store) FreeKeys(ctx context.Context, ids []int64, outcomes []state.Outcome) error {
	bits := make([]int16, len(ids))
	for i, o := range outcomes {
		bits[i] = int16(state.Bit(o.State()))
	}
	err := s.pipeline(ctx, finishLimits, func(b *pgx.Batch) { b.Queue(s.sql.Get("free_ended_keys"), ids, bits) })
	if err != nil {
		return fmt.Errorf("free unique keys: %w", err)
	}
	return nil
}
