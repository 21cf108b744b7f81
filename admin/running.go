package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// readRunning looks up the queues of what executors have taken: a lease does not say.
func (c *collector) readRunning(ctx context.Context, tx pgx.Tx, to readings) error {
	rows, err := tx.Query(ctx, c.sql.Get("leased"), pgx.QueryExecModeCacheDescribe, int64(sampleRuns))
	if err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	var ids []int64
	var runs []int32
	var id, total int64
	var run int32
	if _, err := pgx.ForEachRow(rows, []any{&id, &run, &total}, func() error {
		ids, runs = append(ids, id), append(runs, run)
		return nil
	}); err != nil {
		return fmt.Errorf("read leases: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err = tx.Query(ctx, c.sql.Get("running"), pgx.QueryExecModeCacheDescribe, ids, runs, slices.Min(ids), slices.Max(ids))
	if err != nil {
		return fmt.Errorf("read running jobs: %w", err)
	}
	scale := float64(total) / float64(len(ids))
	var queue string
	var value float64
	if _, err = pgx.ForEachRow(rows, []any{&queue, &value}, func() error {
		to.add("running", queue, value*scale)
		return nil
	}); err != nil {
		return fmt.Errorf("read running jobs: %w", err)
	}
	return nil
}
