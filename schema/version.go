package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// What can be wrong with a schema's version. [Check] returns them inside a [*VersionError].
var (
	ErrMissing = errors.New("schema is not migrated")
	ErrOlder   = errors.New("schema is older than this program")
	ErrNewer   = errors.New("schema is newer than this program")
	ErrDirty   = errors.New("schema is marked dirty")
)

// VersionError says which version a schema has and which this program needs. It unwraps to one of the errors above.
type VersionError struct {
	Schema string
	Have   int // 0: none
	Want   int
	Reason error
}

func (e *VersionError) Error() string {
	switch {
	case errors.Is(e.Reason, ErrMissing):
		return fmt.Sprintf("schema %q holds no tables of Pelton: run `pelton migrate up`", e.Schema)
	case errors.Is(e.Reason, ErrOlder):
		return fmt.Sprintf("schema %q is at version %d, this program needs %d: run `pelton migrate up`", e.Schema, e.Have, e.Want)
	case errors.Is(e.Reason, ErrNewer):
		return fmt.Sprintf("schema %q is at version %d, newer than this program (%d): upgrade the program", e.Schema, e.Have, e.Want)
	default:
		return fmt.Sprintf("schema %q is marked dirty at version %d, which Pelton's own migrations never do: another tool was"+
			" interrupted; repair what it left, then set dirty to false in %s", e.Schema, e.Have, versionTable(e.Schema))
	}
}

func (e *VersionError) Unwrap() error { return e.Reason }

// Querier is what the version is read with: a pool, a connection or a transaction.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Version returns the version of the schema of that name. If there is none, or it is marked dirty, the error is a
// [*VersionError]; the version is right in the latter case too. Where the session's role may not read it, the error is a [*RightsError].
func Version(ctx context.Context, db Querier, name string) (int, error) {
	if err := CheckName(name); err != nil {
		return 0, err
	}
	missing := &VersionError{Schema: name, Want: Latest(), Reason: ErrMissing}
	var exists bool
	var role string
	const look = "SELECT current_user, EXISTS (SELECT FROM pg_class c WHERE c.relname = 'schema_migrations' AND c.relnamespace = to_regnamespace($1))"
	if err := db.QueryRow(ctx, look, quoted(name)).Scan(&role, &exists); err != nil {
		return 0, fmt.Errorf("look for the version of schema %q: %w", name, err)
	}
	if !exists {
		return 0, missing
	}
	var version int
	var dirty bool
	err := db.QueryRow(ctx, "SELECT version, dirty FROM "+versionTable(name)).Scan(&version, &dirty)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, missing
	case Denied(err):
		return 0, &RightsError{Schema: name, Role: role, Err: fmt.Errorf("read the version of schema %q: %w", name, err)}
	case err != nil:
		return 0, fmt.Errorf("read the version of schema %q: %w", name, err)
	case dirty:
		return version, &VersionError{Schema: name, Have: version, Want: Latest(), Reason: ErrDirty}
	default:
		return version, nil
	}
}

// Check refuses a schema whose version is not the one this program was built for, with a [*VersionError] that says what to do.
func Check(ctx context.Context, db Querier, name string) error {
	have, err := Version(ctx, db, name)
	if err != nil {
		return err
	}
	switch want := Latest(); {
	case have < want:
		return &VersionError{Schema: name, Have: have, Want: want, Reason: ErrOlder}
	case have > want:
		return &VersionError{Schema: name, Have: have, Want: want, Reason: ErrNewer}
	default:
		return nil
	}
}

// versionTable is where golang-migrate keeps the version.
func versionTable(name string) string { return quoted(name, "schema_migrations") }
