package schema_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
)

func TestUpDownUpLeavesTheSameSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pool := pgtest.Pool(t, dsn)
	mustUp(t, dsn, "pelton")
	first := catalog(t, pool, "pelton")
	if len(first) < 100 {
		t.Fatalf("the catalog dump has %d lines only", len(first))
	}
	if err := schema.Down(t.Context(), dsn, "pelton"); err != nil {
		t.Fatal(err)
	}
	if left := catalog(t, pool, "pelton"); len(left) != 0 {
		t.Fatalf("down leaves\n%s", strings.Join(left, "\n"))
	}
	if err := schema.Down(t.Context(), dsn, "pelton"); err != nil {
		t.Fatalf("a second down: %v", err)
	}
	mustUp(t, dsn, "pelton")
	if second := catalog(t, pool, "pelton"); !slices.Equal(first, second) {
		t.Fatalf("up, down, up differs from up:\n%s", difference(first, second))
	}
}

func TestUpBySeveralAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if err := schema.Up(t.Context(), dsn, "pelton"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := schema.Check(t.Context(), pgtest.Pool(t, dsn), "pelton"); err != nil {
		t.Fatal(err)
	}
}

// Addresses are shared with pools, whose settings are none of the server's.
func TestAddressWithSettingsOfAPool(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	between := "?"
	if strings.Contains(dsn, "?") {
		between = "&"
	}
	mustUp(t, dsn+between+"pool_max_conns=3&pool_max_conn_lifetime=1h", "pelton")
	err := schema.Up(t.Context(), dsn+between+"pool_max_conns=none", "pelton")
	if err == nil || !strings.Contains(err.Error(), "database address") {
		t.Errorf("a faulty setting: %v", err)
	}
}

func TestSchemasSideBySide(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pool := pgtest.Pool(t, dsn)
	names := []string{"pelton", "other", "_third_3"}
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() { mustUp(t, dsn, name) })
	}
	all.Wait()
	enqueue := func(name string) (n int) {
		mustExec(t, pool, fmt.Sprintf(`SELECT %s.insert_jobs(ARRAY['k'], ARRAY['{}'], ARRAY['default'], ARRAY[1::smallint],
			ARRAY[25::smallint], NULL, NULL, NULL, NULL, NULL, NULL, false)`, name))
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+name+".job").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, name := range names {
		if n := enqueue(name); n != 1 {
			t.Errorf("schema %q has %d jobs after one was enqueued there", name, n)
		}
	}
	want := catalog(t, pool, "pelton")
	if got := catalog(t, pool, "other"); !slices.Equal(want, got) {
		t.Errorf("two schemas of one version differ:\n%s", difference(want, got))
	}
	if err := schema.Down(t.Context(), dsn, "other"); err != nil {
		t.Fatal(err)
	}
	if got := catalog(t, pool, "pelton"); !slices.Equal(want, got) {
		t.Errorf("down of one schema changed another:\n%s", difference(want, got))
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pool := pgtest.Pool(t, dsn)
	latest := schema.Latest()
	expect := func(reason error, text string) {
		t.Helper()
		err := schema.Check(t.Context(), pool, "pelton")
		var version *schema.VersionError
		if !errors.Is(err, reason) || !errors.As(err, &version) || !strings.Contains(err.Error(), text) {
			t.Errorf("check says %v, want a VersionError of %v with %q", err, reason, text)
		}
	}
	expect(schema.ErrMissing, "run `pelton migrate up`")
	mustUp(t, dsn, "pelton")
	if err := schema.Check(t.Context(), pool, "pelton"); err != nil {
		t.Error(err)
	}
	if version, err := schema.Version(t.Context(), pool, "pelton"); err != nil || version != latest {
		t.Errorf("version %d, %v; want %d", version, err, latest)
	}
	mustExec(t, pool, "UPDATE pelton.schema_migrations SET version = 2")
	expect(schema.ErrOlder, fmt.Sprintf(`schema "pelton" is at version 2, this program needs %d: run `+"`pelton migrate up`", latest))
	mustExec(t, pool, "UPDATE pelton.schema_migrations SET version = 999")
	expect(schema.ErrNewer, fmt.Sprintf(`schema "pelton" is at version 999, newer than this program (%d): upgrade the program`, latest))
	if err := schema.Up(t.Context(), dsn, "pelton"); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("up over a newer schema: %v", err)
	}
	if err := schema.Down(t.Context(), dsn, "pelton"); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("down of a newer schema: %v", err)
	}
	mustExec(t, pool, "UPDATE pelton.schema_migrations SET dirty = true")
	expect(schema.ErrDirty, "dirty")
	if err := schema.Up(t.Context(), dsn, "pelton"); !errors.Is(err, schema.ErrDirty) {
		t.Errorf("up over a dirty schema: %v", err)
	}
}

// A role that may not read the version is told what it lacks, and a schema that is not there is missing for it too.
func TestCheckByARoleWithoutRights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	admin := pgtest.Pool(t, dsn)
	role := "nobody of " + admin.Config().ConnConfig.Database
	quoted := pgx.Identifier{role}.Sanitize()
	mustExec(t, admin, "CREATE ROLE "+quoted+" LOGIN")
	t.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+quoted+"; DROP ROLE "+quoted); err != nil {
			t.Error(err)
		}
	})
	pool := pgtest.Pool(t, asRole(t, dsn, role))
	if err := schema.Check(t.Context(), pool, "pelton"); !errors.Is(err, schema.ErrMissing) {
		t.Errorf("without a schema: %v", err)
	}
	mustUp(t, dsn, "pelton")
	for _, lacks := range []string{"schema pelton", "table schema_migrations"} {
		err := schema.Check(t.Context(), pool, "pelton")
		rights, is := errors.AsType[*schema.RightsError](err)
		if !is || rights.Role != role || !schema.Denied(err) || !strings.Contains(err.Error(), "permission denied for "+lacks) ||
			!strings.Contains(err.Error(), "`pelton grants --as ROLE --to "+strconv.Quote(role)+"`") {
			t.Errorf("without a right on %s: %v", lacks, err)
		}
		mustExec(t, admin, "GRANT USAGE ON SCHEMA pelton TO "+quoted)
	}
	mustExec(t, admin, "GRANT SELECT ON pelton.schema_migrations TO "+quoted)
	if err := schema.Check(t.Context(), pool, "pelton"); err != nil {
		t.Errorf("with all that it needs: %v", err)
	}
}

func TestInterruptedMigrationLeavesTheVersionBefore(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pool := pgtest.Pool(t, dsn)
	mustUp(t, dsn, "pelton")
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE pelton.job_attempt"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- schema.Down(ctx, dsn, "pelton") }()
	pgtest.Eventually(t, waitLong, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waiting)
		return err == nil && waiting
	}, "the migration waits for the table")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatalf("down ended with %v", err)
	}
	if version, err := schema.Version(t.Context(), pool, "pelton"); err != nil || version < 7 || version > schema.Latest() {
		t.Fatalf("an interrupted migration leaves version %d, %v", version, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustUp(t, dsn, "pelton")
	if err := schema.Check(t.Context(), pool, "pelton"); err != nil {
		t.Fatal(err)
	}
}

func mustUp(t *testing.T, dsn, name string) {
	t.Helper()
	if err := schema.Up(t.Context(), dsn, name); err != nil {
		t.Error(err)
	}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// catalog describes everything in a schema, one line for each column, constraint, index, function, type and privilege, with the
// schema's own name left out.
func catalog(t *testing.T, pool *pgxpool.Pool, name string) []string {
	t.Helper()
	const dump = `
	WITH n AS (SELECT oid FROM pg_namespace WHERE nspname = $1),
	line AS (
		SELECT format('relation %s %s %s %s %s', c.relname, c.relkind, c.reloptions, pg_get_expr(c.relpartbound, c.oid),
			obj_description(c.oid)) AS l FROM pg_class c, n WHERE c.relnamespace = n.oid AND c.relkind <> 'c'
		UNION ALL
		SELECT format('column %s.%s %s %s %s %s %s %s', c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
			a.attstorage, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum))
		FROM n, pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
		LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relnamespace = n.oid
		UNION ALL
		SELECT format('constraint %s %s %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
		FROM pg_constraint c, n WHERE c.connamespace = n.oid
		UNION ALL
		SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid, n WHERE c.relnamespace = n.oid
		UNION ALL
		SELECT format('view %s %s', c.relname, pg_get_viewdef(c.oid)) FROM pg_class c, n WHERE c.relnamespace = n.oid AND c.relkind = 'v'
		UNION ALL
		SELECT format('function %s %s %s', pg_get_functiondef(p.oid), p.proconfig, obj_description(p.oid))
		FROM pg_proc p, n WHERE p.pronamespace = n.oid AND p.prokind = 'f'
		UNION ALL
		SELECT format('enum %s %s %s', t.typname, e.enumlabel, e.enumsortorder)
		FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid, n WHERE t.typnamespace = n.oid
		UNION ALL
		SELECT format('sequence %s %s %s', c.relname, s.seqcache, s.seqincrement)
		FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid, n WHERE c.relnamespace = n.oid
	)
	SELECT regexp_replace(l, '"?\m' || $1 || '"?\.', '', 'g') FROM line ORDER BY l`
	rows, err := pool.Query(t.Context(), dump, name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.ReplaceAll(line, name+"_wake", "pelton_wake"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

func difference(a, b []string) string {
	var lines []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			lines = append(lines, "- "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			lines = append(lines, "+ "+l)
		}
	}
	return strings.Join(lines, "\n")
}
