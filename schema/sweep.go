package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	sweepBatch   = 1000
	sweepBatches = 100 // of one table in one pass; the next pass goes on
)

// sweep deletes, in bounded batches, what ages row by row.
func (p *pass) sweep(ctx context.Context) error {
	all, now, err := p.list(ctx, false)
	if err != nil {
		return err
	}
	keep := p.config.Retention
	faults := []error{p.sweepOld(ctx, all, now.Add(-keep.Jobs))}
	for _, s := range []struct {
		table, statement string
		arg              any
	}{
		{"job_dead", "sweep_dead", keep.Dead},
		{"audit", "sweep_audit", keep.Audit},
		{"executor", "sweep_executor", keep.Jobs},
		{"floor", "sweep_floor", time.Hour},
		{"job_sleeper", "sweep_sleeper", time.Minute},
		{"queue_tally", "sweep_tally", 48 * time.Hour},
		{tableTick, "sweep_tick", keep.Ticks},
		{"schedule_backfill", "sweep_backfill", keep.Ticks},
		{"flow_sla_miss", "sweep_sla_miss", keep.Ticks},
		{"alert_mute", "sweep_mute", 24 * time.Hour},
		{"api_request", "sweep_request", 24 * time.Hour},
		{"access_session", "sweep_session", time.Duration(0)},
		{"access_failure", "sweep_failure", 24 * time.Hour},
		{"access_token", "sweep_token", keep.Audit},
		{"job_change", "sweep_change", floorOf(all)},
		{"job_void", "sweep_void", floorOf(all)},
		{"job_unique", "sweep_unique", floorOf(all)},
	} {
		faults = append(faults, p.sweepTable(ctx, s.table, s.statement, s.arg))
	}
	return errors.Join(append(faults, p.failpoint("swept"))...)
}

func (p *pass) sweepTable(ctx context.Context, table, statement string, arg any) error {
	for range sweepBatches {
		n := 0
		err := p.tx(ctx, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, p.sql.Get(statement), pgx.QueryExecModeExec, arg, sweepBatch)
			n = int(tag.RowsAffected())
			return err
		})
		if err != nil {
			return fmt.Errorf("delete old rows of %q: %w", table, err)
		}
		p.report.Deleted[table] += n
		if n < sweepBatch {
			return nil
		}
	}
	return nil
}

// floorOf is the id below which jobs live in _old partitions only.
func floorOf(all []Partition) int64 {
	floor := int64(math.MinInt64)
	for _, part := range of(all, tableJob) {
		if part.State != PartitionOld {
			break
		}
		floor = part.To
	}
	return floor
}

// sweepOld deletes jobs of the _old partitions that ended before the deadline. Not in every pass: it reads all their attempts.
func (p *pass) sweepOld(ctx context.Context, all []Partition, deadline time.Time) error {
	for _, s := range spans(of(all, tableJob), of(all, tableAttempt)) {
		if !s.old() || !p.swept.due(s.jobs[0].oid) {
			continue
		}
		for range sweepBatches {
			n, err := p.sweepOldBatch(ctx, s, deadline)
			if err != nil {
				return fmt.Errorf("delete old jobs of %q: %w", s.jobs[0].Name, err)
			}
			p.report.Deleted[tableJob] += n
			if n < sweepBatch {
				break
			}
		}
		p.swept.done(s.jobs[0].oid)
	}
	return p.failpoint("swept old")
}

// sweepOldBatch deletes a batch, unless somebody is reviving or changing a job of this partition.
func (p *pass) sweepOldBatch(ctx context.Context, s span, deadline time.Time) (n int, err error) {
	lock := fmt.Sprintf("SELECT bool_and(pg_try_advisory_xact_lock(%s(k))) FROM unnest(%s) k", p.table("partition_lock"), oids(s.jobs))
	err = p.tx(ctx, func(tx pgx.Tx) error {
		var held bool
		if err := tx.QueryRow(ctx, lock).Scan(&held); err != nil || !held {
			return err
		}
		return tx.QueryRow(ctx, p.sql.Get("sweep_old"), pgx.QueryExecModeExec, s.from, s.to, deadline, sweepBatch).Scan(&n)
	})
	if sqlState(err) == lockNotAvailable {
		return 0, nil
	}
	return n, err
}
