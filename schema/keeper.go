package schema

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// KeeperConfig says how partitions are kept. The zero value means the defaults. All keepers of a schema should agree.
type KeeperConfig struct {
	// Retention of jobs, logs, dead letters, audit and ticks.
	Retention Retention

	// PartitionSize is the time one partition stands for, in whole seconds. Partitions that exist keep theirs. Defaults to 24 hours.
	PartitionSize time.Duration

	// Ahead is how many partitions are made ahead. Defaults to 30.
	Ahead int

	// Low is the number of partitions ahead at which more are made; at most Ahead. Defaults to half of Ahead, at least 1.
	Low int

	// MaxSurvivors is how many jobs may outlive one partition: with more, it stays as it is for now. Defaults to 100,000.
	MaxSurvivors int
}

func (c KeeperConfig) withDefaults() KeeperConfig {
	c.Retention = c.Retention.withDefaults()
	c.PartitionSize = cmp.Or(c.PartitionSize, day)
	c.Ahead = cmp.Or(c.Ahead, 30)
	c.Low = cmp.Or(c.Low, max(1, c.Ahead/2))
	c.MaxSurvivors = cmp.Or(c.MaxSurvivors, 100_000)
	return c
}

func (c KeeperConfig) validate() error {
	var faults []error
	if err := c.Retention.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("config: %w", err))
	}
	if c.PartitionSize < time.Second || c.PartitionSize%time.Second != 0 {
		faults = append(faults, fmt.Errorf("config: PartitionSize is %v, want whole seconds", c.PartitionSize))
	}
	if c.Ahead < 1 || c.Ahead > 1000 {
		faults = append(faults, fmt.Errorf("config: Ahead is %d, want 1 to 1,000", c.Ahead))
	}
	if c.Low < 1 || c.Low > c.Ahead {
		faults = append(faults, fmt.Errorf("config: Low is %d, want 1 to Ahead, which is %d", c.Low, c.Ahead))
	}
	if c.MaxSurvivors < 1 {
		faults = append(faults, fmt.Errorf("config: MaxSurvivors is %d, want at least 1", c.MaxSurvivors))
	}
	return errors.Join(faults...)
}

// Keeper makes partitions ahead, drops those past their retention, and deletes what else is past its own. The database's
// clock decides. Safe for concurrent use, by any number of processes.
type Keeper struct {
	pool      *pgxpool.Pool
	schema    string
	config    KeeperConfig
	sql       *sqlfile.Set
	patience  patience
	failpoint func(step string) error // tests stop a pass here
	kept      *memory                 // partitions with too many survivors
	swept     *memory                 // _old partitions looked through
}

// ErrNotOwner is returned by Maintain where the session's role neither owns the tables nor is a member of their owner.
var ErrNotOwner = errors.New("not the owner of the tables")

// NewKeeper makes a keeper of the schema of that name. The pool must allow at least two connections. For Maintain its role must own the tables,
// or be a member of their owner: it becomes the owner for each transaction then, so that what it makes belongs to the owner too.
func NewKeeper(pool *pgxpool.Pool, name string, config KeeperConfig) (*Keeper, error) {
	config = config.withDefaults()
	if err := errors.Join(CheckName(name), config.validate()); err != nil {
		return nil, fmt.Errorf("keeper: %w", err)
	}
	if n := pool.Config().MaxConns; n < 2 {
		return nil, fmt.Errorf("keeper: the pool allows %d connection, want at least 2", n)
	}
	return &Keeper{
		pool: pool, schema: name, config: config, sql: sqlfile.Load(files, "sql", name), patience: defaultPatience,
		failpoint: func(string) error { return nil },
		kept:      newMemory(config.Retention.Jobs), swept: newMemory(config.Retention.Jobs),
	}, nil
}

// Maintain makes one pass over everything that ages. A pass with nothing to do is a few cheap reads. A step that cannot have its
// locks is postponed, which is no error. The error joins the faults of all steps; each step may be repeated after any
// failure, so the next pass completes what this one could not.
func (k *Keeper) Maintain(ctx context.Context) (Report, error) {
	report := Report{Deleted: map[string]int{}}
	release, err := k.hold(ctx)
	if err != nil || release == nil {
		report.Busy = err == nil
		return report, err
	}
	defer release()
	owner, err := k.owner(ctx)
	if err != nil {
		return report, err
	}
	p := &pass{Keeper: k, owner: owner, report: &report}
	if err := k.pool.QueryRow(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&p.no); err != nil {
		return report, fmt.Errorf("number of the pass: %w", err)
	}
	var faults []error
	for _, step := range []func(context.Context) error{
		p.clean, p.extendAll, p.retireJobs, p.retireLogs, p.retireTicks, p.clean, p.sweep, p.measure,
	} {
		if err := step(ctx); err != nil {
			faults = append(faults, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return report, errors.Join(faults...)
}

// owner is who owns the tables, if this session's role may become it.
func (k *Keeper) owner(ctx context.Context) (string, error) {
	var owner, user string
	var may bool
	if err := k.pool.QueryRow(ctx, k.sql.Get("owner")).Scan(&owner, &user, &may); err != nil {
		return "", fmt.Errorf("look for the owner of the tables: %w", err)
	}
	if !may {
		return "", fmt.Errorf("%w of schema %q: they belong to %q, and %q is no member of it", ErrNotOwner, k.schema, owner, user)
	}
	return owner, nil
}

// Ahead says how far the partitions of each table are made ahead.
func (k *Keeper) Ahead(ctx context.Context) ([]Ahead, error) { return readAhead(ctx, k.pool, k.sql) }

// ReadAhead is Keeper.Ahead on a pool, a connection or a transaction, for the schema of a name. Who holds a connection gives that: to take a second one
// from the same pool may be to wait for oneself.
func ReadAhead(ctx context.Context, db sqlfile.DB, name string) ([]Ahead, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return readAhead(ctx, db, sqlfile.Load(files, "sql", name))
}

func readAhead(ctx context.Context, db sqlfile.DB, sql *sqlfile.Set) ([]Ahead, error) {
	all, now, err := listPartitions(ctx, db, sql, false)
	if err != nil {
		return nil, err
	}
	var ahead []Ahead
	for _, table := range partitioned {
		a := Ahead{Table: table, Until: math.MaxInt64}
		for _, p := range of(all, table) {
			if p.State == PartitionAhead {
				a.Partitions++
			}
			if p.State == PartitionRest {
				a.Until = p.Start.Sub(now) // no start: the open-ended one is all there is, and long reached
			}
		}
		ahead = append(ahead, a)
	}
	return ahead, nil
}

// hold takes the keepers' lock; a nil release means that another has it. Two keepers at work would be wasteful, not wrong: each
// pass has tables of its own, which the next one's start removes. The lock belongs to a transaction, because a pooler may lend a session.
func (k *Keeper) hold(ctx context.Context) (release func(), err error) {
	tx, err := k.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin maintenance: %w", err)
	}
	release = func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }
	var held bool
	const lock = "SELECT pg_try_advisory_xact_lock(hashtextextended('pelton keeper ' || $1, 0))" +
		" AND set_config('idle_in_transaction_session_timeout', '0', true) IS NOT NULL"
	if err := tx.QueryRow(ctx, lock, k.schema).Scan(&held); err != nil {
		release()
		return nil, fmt.Errorf("lock maintenance: %w", err)
	}
	if !held {
		release()
		return nil, nil
	}
	return release, nil
}

// pass is one call of Maintain.
type pass struct {
	*Keeper
	owner  string
	no     int64 // names the pass's own tables and notes; the time in microseconds
	report *Report
	copies int // made so far
	taken  int // partitions taken out so far
}

func (p *pass) measure(ctx context.Context) (err error) {
	p.report.Ahead, err = p.Ahead(ctx)
	return err
}

// table is the quoted name of a table of the schema.
func (k *Keeper) table(name string) string { return quoted(k.schema, name) }
