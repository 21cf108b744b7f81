package grant

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// Every table, view and named sequence of the schema has its row in the matrix, so that who adds one decides who may do what with it; and
// every row is of something that there is, columns too.
func TestMatrixNamesAllThatThereIs(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	rows, err := pool.Query(t.Context(), `SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'pelton'::regnamespace
		AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND NOT c.relispartition
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i')`) // not the sequences of identity columns
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(parsed, func(r row) bool { return r.object == name }) {
			t.Errorf("schema/grant/matrix.txt has no row for %s: say there what each role may do with it, - for nothing", name)
		}
	}
	seen := map[string]bool{}
	for _, r := range parsed {
		if seen[r.object] {
			t.Errorf("%s has two rows", r.object)
		}
		seen[r.object] = true
		if !slices.Contains([]Section{Jobs, Flows, Schedules, Access}, r.section) {
			t.Errorf("%s is in section %q, which there is not", r.object, r.section)
		}
	}
	if missing, err := Missing(t.Context(), pool, "pelton", Roles()); err != nil || len(missing) != 0 { // fails where something does not exist
		t.Errorf("the owner lacks %q, %v", missing, err)
	}
}

// The table in docs/operations.md is the matrix.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, matrix, _ := strings.Cut(Text(), "\n\n")
	if !strings.Contains(string(docs), "```\n"+matrix+"```\n") {
		t.Error("docs/operations.md has another table than schema/grant/matrix.txt from its header on; copy it")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const head = "what enqueuer starter worker scheduler auditor admin\n"
	for text, says := range map[string]string{
		"what enqueuer worker\n":   "its columns are",
		head + "job r":             `"job" has 1 cells, want 6`,
		head + "job r - - - - x":   `"x" of job: want letters of rawdU`,
		head + "job r() - - - - -": `"r()" of job`,
		head + "job r- - - - - -":  `"r-" of job`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestParseRoles(t *testing.T) {
	t.Parallel()
	roles, err := ParseRoles("worker, enqueuer,worker")
	if err != nil || !slices.Equal(roles, []Role{Worker, Enqueuer}) {
		t.Errorf("%q, %v", roles, err)
	}
	if _, err := ParseRoles("worker,root"); err == nil || !strings.Contains(err.Error(), "enqueuer, starter, worker, scheduler, auditor or admin") {
		t.Errorf("unknown role: %v", err)
	}
}

// A right on a whole table makes the same on its columns needless.
func TestRolesTogetherHaveEachRightOnce(t *testing.T) {
	t.Parallel()
	statements, err := Statements("my_jobs", `we"ird`, Enqueuer, Worker)
	if err != nil {
		t.Fatal(err)
	}
	if want := `GRANT SELECT, INSERT ON "my_jobs"."job" TO "we""ird"`; !slices.Contains(statements, want) {
		t.Errorf("want %s among\n%s", want, strings.Join(statements, "\n"))
	}
	alone, err := Statements("my_jobs", "x", Enqueuer)
	if err != nil {
		t.Fatal(err)
	}
	if want := `GRANT SELECT ("job_id", "run", "outcome") ON "my_jobs"."job_attempt" TO "x"`; !slices.Contains(alone, want) {
		t.Errorf("want %s among\n%s", want, strings.Join(alone, "\n"))
	}
}

// inRole makes a role with some rights, in a schema of another name than the usual, and a pool of it.
func inRole(t *testing.T, roles ...Role) (name string, owner, pool *pgxpool.Pool) {
	t.Helper()
	dsn := pgtest.FromTemplate(t, "my_jobs", func(ctx context.Context, dsn string) error { return schema.Up(ctx, dsn, "my_jobs") })
	owner = pgtest.Pool(t, dsn)
	var database string
	if err := owner.QueryRow(t.Context(), "SELECT current_database()").Scan(&database); err != nil {
		t.Fatal(err)
	}
	name = `we"ird ` + database
	exec(t, owner, "CREATE ROLE "+quoted(name)+" LOGIN")
	t.Cleanup(func() {
		if _, err := owner.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+quoted(name)+"; DROP ROLE "+quoted(name)); err != nil {
			t.Error(err)
		}
	})
	give(t, owner, name, roles...)
	return name, owner, pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.User = name })
}

func give(t *testing.T, owner *pgxpool.Pool, name string, roles ...Role) {
	t.Helper()
	statements, err := Statements("my_jobs", name, roles...)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, owner, statements...)
}

func exec(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// What is given is what is asked for, for each role and for all of them together.
func TestGivenIsEnough(t *testing.T) {
	t.Parallel()
	for _, roles := range append([][]Role{Roles()}, [][]Role{{Enqueuer}, {Starter}, {Worker}, {Scheduler}, {Auditor}, {Admin}}...) {
		name, owner, pool := inRole(t, roles...)
		if err := Check(t.Context(), pool, "my_jobs", name, roles); err != nil {
			t.Errorf("%q: %v", roles, err)
		}
		if err := CheckRole(t.Context(), owner, "my_jobs", name); err != nil {
			t.Error(err)
		}
		if surplus, err := Surplus(t.Context(), owner, "my_jobs", name, roles...); err != nil || len(surplus) != 0 {
			t.Errorf("%q: surplus %q, %v", roles, surplus, err)
		}
	}
}

// Surplus takes back what is not needed any more, wherever it was given, and leaves what is.
func TestSurplus(t *testing.T) {
	t.Parallel()
	name, owner, pool := inRole(t, Worker, Auditor)
	exec(t, owner, "GRANT ALL ON my_jobs.job_old, my_jobs.job_ready_seq TO "+quoted(name), "GRANT UPDATE (args) ON my_jobs.job TO "+quoted(name),
		"GRANT CREATE ON SCHEMA my_jobs TO "+quoted(name), "CREATE TABLE my_jobs.other ()", "GRANT SELECT ON my_jobs.other TO "+quoted(name))
	surplus, err := Surplus(t.Context(), owner, "my_jobs", name, Enqueuer)
	if err != nil {
		t.Fatal(err)
	}
	exec(t, owner, surplus...)
	give(t, owner, name, Enqueuer)
	if again, err := Surplus(t.Context(), owner, "my_jobs", name, Enqueuer); err != nil || len(again) != 0 {
		t.Errorf("still there: %q, %v", again, err)
	}
	if missing, err := Missing(t.Context(), pool, "my_jobs", []Role{Enqueuer}); err != nil || len(missing) != 0 {
		t.Errorf("missing: %q, %v", missing, err)
	}
	var may bool
	if err := owner.QueryRow(t.Context(), `SELECT has_table_privilege($1, 'my_jobs.job', 'SELECT') OR has_column_privilege($1, 'my_jobs.job', 'args', 'SELECT')
		OR has_any_column_privilege($1, 'my_jobs.job', 'UPDATE') OR has_schema_privilege($1, 'my_jobs', 'CREATE')`, name).Scan(&may); err != nil || may {
		t.Errorf("it may still read or write args, or make tables: %v", err)
	}
	if surplus, err = Surplus(t.Context(), owner, "my_jobs", name); err != nil {
		t.Fatal(err)
	}
	exec(t, owner, surplus...)
	if err := owner.QueryRow(t.Context(), `SELECT has_schema_privilege($1, 'my_jobs', 'USAGE')`, name).Scan(&may); err != nil || may {
		t.Errorf("it may still use the schema: %v", err)
	}
}

func TestCheckRole(t *testing.T) {
	t.Parallel()
	name, owner, pool := inRole(t, Auditor)
	if err := CheckRole(t.Context(), owner, "my_jobs", `no "one`); err == nil || !strings.Contains(err.Error(), `CREATE ROLE "no ""one" LOGIN`) {
		t.Errorf("a role that is not there: %v", err)
	}
	if err := CheckRole(t.Context(), pool, "my_jobs", name); err == nil || !strings.Contains(err.Error(), "does not own the tables") {
		t.Errorf("who does not own the tables: %v", err)
	}
	exec(t, owner, "REVOKE SELECT ON my_jobs.job FROM "+quoted(name))
	err := Check(t.Context(), pool, "my_jobs", "x", []Role{Auditor})
	if err == nil || !strings.Contains(err.Error(), "SELECT on job; give them with `pelton grants --as auditor`") {
		t.Errorf("what lacks: %v", err)
	}
}

// Who enqueues puts tickets at the end of the line, and nowhere else: one below the low-water mark would be found by nobody.
func TestAnEnqueuerDoesNotChooseAPlaceInTheLine(t *testing.T) {
	t.Parallel()
	_, _, pool := inRole(t, Enqueuer)
	for columns, values := range map[string]string{"seq": "1", "entered_at": "now()", "runs": "ARRAY[7]", "attempts": "ARRAY[7]"} {
		_, err := pool.Exec(t.Context(), "INSERT INTO my_jobs.job_ready (priority, line, job_ids, "+columns+") VALUES (1, 'default', ARRAY[1], "+values+")")
		if err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("a ticket with %s: %v", columns, err)
		}
	}
	exec(t, pool, "INSERT INTO my_jobs.job_ready (priority, line, job_ids) VALUES (1, 'default', ARRAY[1])")
}
