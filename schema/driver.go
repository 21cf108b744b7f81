package schema

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/golang-migrate/migrate/v4/database"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	migrationTimeout     = 10 * time.Minute       // of one migration
	migrationLockTimeout = 500 * time.Millisecond // longest wait for one lock, while which others may wait behind it
	migrationTries       = 120
)

// driver is golang-migrate's, made atomic: a migration and its version commit in one transaction, so that there is nothing
// to repair after a crash; golang-migrate's own would leave the schema marked dirty. That also makes it safe to give up a
// migration that waits for a lock, let the others go on, and try again.
type driver struct {
	database.Driver
	ctx     context.Context //nolint:containedctx // golang-migrate's interface passes none
	table   string
	version int // what the migration at hand leads to
	written bool
}

func openDriver(ctx context.Context, dsn, name string) (*driver, error) {
	config, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*config)
	inner, err := migratepgx.WithInstance(db, &migratepgx.Config{SchemaName: name, StatementTimeout: migrationTimeout})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &driver{Driver: inner, ctx: ctx, table: versionTable(name)}, nil
}

// SetVersion is called before a migration (dirty) and after it. Run writes the version, unless there was nothing to run.
func (d *driver) SetVersion(version int, dirty bool) error {
	if dirty {
		d.version, d.written = version, false
		return nil
	}
	if d.written && d.version == version {
		return nil
	}
	return d.Driver.SetVersion(version, false)
}

// Run runs a migration's text and writes its version in one transaction.
func (d *driver) Run(migration io.Reader) error {
	text, err := io.ReadAll(migration)
	if err != nil {
		return err
	}
	all := d.transaction(text)
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		err := d.Driver.Run(bytes.NewReader(all))
		if err == nil {
			d.written = true
			return nil
		}
		if rollback := d.Driver.Run(bytes.NewReader([]byte("ROLLBACK"))); rollback != nil {
			return errors.Join(err, rollback)
		}
		if !gaveUpLock(err) || try == migrationTries {
			return err
		}
		if err := wait(d.ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, time.Second)
	}
}

func (d *driver) transaction(text []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = %d; SET LOCAL statement_timeout = 0;\n",
		migrationLockTimeout.Milliseconds())
	b.Write(text)
	fmt.Fprintf(&b, "\n;DELETE FROM %s;", d.table)
	if d.version >= 0 {
		fmt.Fprintf(&b, "INSERT INTO %s (version, dirty) VALUES (%d, false);", d.table, d.version)
	}
	b.WriteString("COMMIT;")
	return b.Bytes()
}

func gaveUpLock(err error) bool {
	if failed, ok := errors.AsType[database.Error](err); ok {
		err = failed.OrigErr
	}
	return sqlState(err) == lockNotAvailable
}

const (
	lockNotAvailable = "55P03"
	deadlockDetected = "40P01"
)

// sqlState returns the SQLSTATE of a Postgres error, or "".
func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// wait pauses for d, or until ctx ends, with its cause as the error.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
