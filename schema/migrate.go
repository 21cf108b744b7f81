package schema

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"time"

	"github.com/golang-migrate/migrate/v4"
	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/peltonq/pelton/internal/sqlfile"
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

// Up migrates the schema to the newest version this program knows, creating it if needed. dsn must reach Postgres itself, not
// a pooler in transaction mode, because migrations hold a session lock.
func Up(ctx context.Context, dsn, name string) error {
	return withMigrate(ctx, dsn, name, func(m *migrate.Migrate) error { return m.Up() })
}

// Down removes everything in the schema but the schema itself. All jobs are lost.
func Down(ctx context.Context, dsn, name string) error {
	return withMigrate(ctx, dsn, name, func(m *migrate.Migrate) error { return m.Down() })
}

func withMigrate(ctx context.Context, dsn, name string, run func(*migrate.Migrate) error) (err error) {
	if err := CheckName(name); err != nil {
		return err
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return fmt.Errorf("database address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := createSchema(ctx, db, name); err != nil {
		return err
	}
	driver, err := migratepgx.WithInstance(db, &migratepgx.Config{SchemaName: name, StatementTimeout: 10 * time.Minute})
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", name, err)
	}
	source, err := iofs.New(renamed{migrations, name}, "migrations")
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	m, err := migrate.NewWithInstance("iofs", source, name, driver)
	if err != nil {
		return fmt.Errorf("migrate schema %q: %w", name, err)
	}
	if err := run(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return fmt.Errorf("migrate schema %q: %w", name, err)
	}
	sourceErr, dbErr := m.Close()
	return errors.Join(sourceErr, dbErr)
}

func createSchema(ctx context.Context, db *sql.DB, name string) error {
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create schema %q: %w", name, err)
	}
	return nil
}

// renamed is a file system of SQL files that puts the configured schema's name into each.
type renamed struct {
	fs.ReadDirFS
	schema string
}

func (r renamed) Open(name string) (fs.File, error) {
	f, err := r.ReadDirFS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, err
	}
	text, err := fs.ReadFile(r.ReadDirFS, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newTextFile(f, sqlfile.ForSchema(string(text), r.schema)), nil
}
