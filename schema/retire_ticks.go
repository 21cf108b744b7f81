package schema

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
)

// retireTicks drops partitions of schedule_tick that are past their retention. Ticks of those times may still come, from backfills: the
// partition for the time before grows over the gap. Rows there are deleted one by one.
func (p *pass) retireTicks(ctx context.Context) error {
	all, now, err := p.list(ctx, false)
	if err != nil {
		return err
	}
	parts := of(all, tableTick)
	if len(parts) == 0 || parts[0].From != math.MinInt64 {
		return fmt.Errorf("%q has no partition for the time before", tableTick)
	}
	deadline := idOf(now.Add(-p.config.Retention.Ticks))
	old, gone := parts[0], parts[1:1]
	for _, part := range parts[1:] {
		if part.To > deadline {
			break
		}
		gone = append(gone, part)
	}
	if len(gone) == 0 {
		return nil
	}
	bound := end(gone)
	if done, err := p.boundOld(ctx, old, bound); err != nil || !done {
		return err
	}
	parent := p.table(tableTick)
	var tables, statements []string
	for _, part := range gone {
		tables = append(tables, part.Name)
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, p.table(part.Name)),
			fmt.Sprintf("ALTER TABLE %s RENAME TO %s", p.table(part.Name), quoted(p.gone(tableTick))))
	}
	statements = append(statements,
		fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, p.table(old.Name)),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, p.table(old.Name), boundSQL(math.MinInt64, bound)),
		fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", p.table(old.Name), closeCheck))
	locks := slices.Concat(tables, []string{old.Name, tableTick})
	done, err := p.ddl(ctx, "detach old partitions of "+tableTick, locks, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx, locks...); err != nil {
			return err
		}
		if err := run(ctx, tx, statements...); err != nil {
			return err
		}
		return p.failpoint("detaching ticks")
	})
	if err != nil || !done {
		return err
	}
	p.report.Dropped = append(p.report.Dropped, tables...)
	return p.failpoint("detached ticks")
}

// boundOld proves by a constraint that the partition for the time before holds nothing from the bound on, so that it need not be read
// under the parent's lock.
func (p *pass) boundOld(ctx context.Context, old Partition, bound int64) (bool, error) {
	table := p.table(old.Name)
	done, err := p.ddl(ctx, "put an end to "+old.Name, []string{old.Name}, func(tx pgx.Tx) error {
		return run(ctx, tx, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s, ADD CONSTRAINT %[2]s CHECK (%s < %d) NOT VALID",
			table, closeCheck, keyColumn(tableTick), bound))
	})
	if err != nil || !done {
		return false, err
	}
	return p.ddl(ctx, "validate the end of "+old.Name, []string{old.Name}, func(tx pgx.Tx) error {
		return run(ctx, tx, "SET LOCAL statement_timeout = 0", fmt.Sprintf("ALTER TABLE %s VALIDATE CONSTRAINT %s", table, closeCheck))
	})
}
