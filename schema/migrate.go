package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrations embed.FS

// DefaultName is the Postgres schema that Pelton uses unless told otherwise.
const DefaultName = "pelton"

var validName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,49}$`)

// CheckName refuses a schema name that is not a plain lower-case identifier of at most 50 bytes.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("schema name %q: want a lower-case letter or _, then up to 49 letters, digits or _", name)
	}
	return nil
}

// Up migrates the schema to the newest version this program knows, creating it if needed. Any number of processes may call it at
// once: one works, the others wait. Each migration commits together with its version, so that one which is interrupted
// leaves the version before it. A schema that is newer than this program is refused with a [*VersionError].
//
// dsn must reach Postgres itself, not a pooler in transaction mode, because migrations hold a session lock.
func Up(ctx context.Context, dsn, name string) error {
	return withLock(ctx, dsn, name, func(conn *pgx.Conn) error {
		if err := createSchema(ctx, conn, name); err != nil {
			return err
		}
		err := Check(ctx, conn, name)
		if errors.Is(err, ErrMissing) || errors.Is(err, ErrOlder) {
			return runMigrations(ctx, dsn, name, 1)
		}
		return err
	})
}

// Down removes everything of Pelton's from the schema, but not the schema itself. All jobs are lost. It wants dsn as Up does.
func Down(ctx context.Context, dsn, name string) error {
	return withLock(ctx, dsn, name, func(conn *pgx.Conn) error {
		err := Check(ctx, conn, name)
		if err != nil && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrOlder) {
			return err
		}
		if errors.Is(err, ErrMissing) {
			return dropVersionTable(ctx, conn, name)
		}
		if err := runMigrations(ctx, dsn, name, -1); err != nil {
			return err
		}
		return dropVersionTable(ctx, conn, name)
	})
}

func dropVersionTable(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable(name)).Scan(&exists); err != nil || !exists {
		return err
	}
	if _, err := conn.Exec(ctx, "DROP TABLE "+versionTable(name)); err != nil {
		return fmt.Errorf("drop the version table of schema %q: %w", name, err)
	}
	return nil
}

// withLock runs fn while no other process migrates the schema. The wait for the lock ends with ctx, which golang-migrate's
// own does not.
func withLock(ctx context.Context, dsn, name string, fn func(*pgx.Conn) error) (err error) {
	if err := CheckName(name); err != nil {
		return err
	}
	config, err := parseDSN(dsn)
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", name, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	const lock = "SELECT set_config('lock_timeout', '0', false), set_config('statement_timeout', '0', false)," +
		" pg_advisory_lock(hashtextextended('pelton migrations ' || $1, 0))"
	if _, err := conn.Exec(ctx, lock, name); err != nil {
		return fmt.Errorf("wait for other migrations of schema %q: %w", name, err)
	}
	return fn(conn)
}

// parseDSN reads an address as a pool does: pool_max_conns and its like are no settings of the server.
func parseDSN(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("database address: %w", err)
	}
	return config.ConnConfig, nil
}

// createSchema asks first, because CREATE SCHEMA wants the right to create even where there is nothing to do.
func createSchema(ctx context.Context, conn *pgx.Conn, name string) error {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", quoted(name)).Scan(&exists); err != nil {
		return fmt.Errorf("look for schema %q: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE SCHEMA "+quoted(name)); err != nil {
		return fmt.Errorf("create schema %q: %w", name, err)
	}
	return nil
}

func runMigrations(ctx context.Context, dsn, name string, step int) (err error) {
	driver, err := openDriver(ctx, dsn, name)
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", name, err)
	}
	source, err := iofs.New(renamed{migrations, name}, "migrations")
	if err != nil {
		return errors.Join(fmt.Errorf("read migrations: %w", err), driver.Close())
	}
	m, err := migrate.NewWithInstance("iofs", source, name, driver)
	if err != nil {
		return errors.Join(fmt.Errorf("migrate schema %q: %w", name, err), driver.Close())
	}
	defer func() {
		sourceErr, dbErr := m.Close()
		err = errors.Join(err, sourceErr, dbErr)
	}()
	return eachStep(ctx, m, name, step)
}

// eachStep runs one migration at a time, up (1) or down (-1): golang-migrate leaves goroutines behind when one of many fails.
func eachStep(ctx context.Context, m *migrate.Migrate, name string, step int) error {
	for {
		version, _, err := m.Version()
		if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
			return fmt.Errorf("read the version of schema %q: %w", name, err)
		}
		if step > 0 && int(version) >= Latest() || step < 0 && errors.Is(err, migrate.ErrNilVersion) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("migrate schema %q from version %d: %w", name, version, context.Cause(ctx))
		}
		if err := m.Steps(step); err != nil {
			return fmt.Errorf("migrate schema %q from version %d: %w", name, version, err)
		}
	}
}

func quoted(parts ...string) string { return pgx.Identifier(parts).Sanitize() }

// Latest is the version of the newest migration this program knows.
func Latest() int {
	latest := 0
	files, err := fs.Glob(migrations, "migrations/*.up.sql")
	if err != nil {
		panic(fmt.Errorf("list migrations: %w", err)) // the pattern is ours
	}
	for _, file := range files {
		var version int
		if _, err := fmt.Sscanf(file, "migrations/%d_", &version); err != nil {
			panic(fmt.Errorf("version of migration %q: %w", file, err)) // the files are embedded
		}
		latest = max(latest, version)
	}
	return latest
}
