package schema

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience bounds a step that needs locks.
type patience struct {
	lock  time.Duration // longest wait for one lock, during which others wait behind it
	tries int
	pause time.Duration // after the first try; doubles up to 20 times that
}

var defaultPatience = patience{lock: 50 * time.Millisecond, tries: 8, pause: 100 * time.Millisecond}

// ddl runs fn in a transaction of its own that waits for each lock at most as long as patience allows. A try that does not get
// them is rolled back, so that those who wait behind it go on, and repeated after a pause. After the last try the step is
// reported as postponed, with those who hold locks on the tables.
func (p *pass) ddl(ctx context.Context, step string, tables []string, fn func(tx pgx.Tx) error) (done bool, err error) {
	pause := p.patience.pause
	for try := 1; ; try++ {
		err := p.tx(ctx, fn)
		if err == nil {
			return true, nil
		}
		if state := sqlState(err); state != lockNotAvailable && state != deadlockDetected {
			return false, fmt.Errorf("%s: %w", step, err)
		}
		if try == p.patience.tries {
			return false, p.postpone(ctx, step, try, tables)
		}
		if err := p.failpoint("wait " + step); err != nil {
			return false, err
		}
		if err := wait(ctx, pause/2+rand.N(pause/2+1)); err != nil {
			return false, fmt.Errorf("%s: %w", step, err)
		}
		pause = min(2*pause, 20*p.patience.pause)
	}
}

// tx runs fn as the tables' owner, with limits that hold under any setting of the role. The idle timeout ends the transaction of a process that was
// stopped while it held locks others wait for.
func (p *pass) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, p.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		const limits = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', '30s', true)," +
			" set_config('idle_in_transaction_session_timeout', '5s', true), set_config('role', $2, true)"
		if _, err := tx.Exec(ctx, limits, fmt.Sprintf("%dms", p.patience.lock.Milliseconds()), p.owner); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// long runs a statement that reads much and blocks nobody, so it may take its time.
func (p *pass) long(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return p.tx(ctx, func(tx pgx.Tx) error {
		const limits = "SELECT set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true)"
		if _, err := tx.Exec(ctx, limits); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

func (p *pass) postpone(ctx context.Context, step string, tries int, tables []string) error {
	postponed := Postponed{Step: step, Tries: tries}
	names := make([]string, len(tables))
	for i, table := range tables {
		names[i] = p.table(table)
	}
	rows, err := p.pool.Query(ctx, p.sql.Get("blockers"), names)
	if err == nil {
		postponed.Blockers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b Blocker, err error) {
			var pid *int
			err = row.Scan(&pid, &b.State, &b.Query, &b.Since)
			if pid != nil {
				b.PID = *pid
			}
			return b, err
		})
	}
	p.report.Postponed = append(p.report.Postponed, postponed)
	if err != nil {
		return fmt.Errorf("%s: look for who holds its locks: %w", step, err)
	}
	return nil
}

// lock takes ACCESS EXCLUSIVE on partitions first and on their parents last: while it waits for a partition, nobody waits for
// the parents, and so no enqueue.
func (p *pass) lock(ctx context.Context, tx pgx.Tx, tables ...string) error {
	for _, table := range tables {
		if _, err := tx.Exec(ctx, "LOCK TABLE ONLY "+p.table(table)+" IN ACCESS EXCLUSIVE MODE"); err != nil {
			return fmt.Errorf("lock %q: %w", table, err)
		}
	}
	return nil
}

// run sends statements without parameters in one round trip, because others may wait meanwhile.
func run(ctx context.Context, tx pgx.Tx, statements ...string) error {
	if _, err := tx.Exec(ctx, strings.Join(statements, ";\n")); err != nil {
		return err
	}
	return nil
}
