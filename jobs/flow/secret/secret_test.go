package secret_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const value = "correct horse\nbattery"

// desk is a client with a key file, and a node's job that may read.
type desk struct {
	t       *testing.T
	pool    *pgxpool.Pool
	file    secret.KeyFile
	secrets *secret.Client
	reader  *secret.Reader
	node    secret.Node
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, pool: schematest.Pool(t), file: secret.KeyFile(filepath.Join(t.TempDir(), "keys"))}
	client, err := jobs.NewClient(d.pool, nil)
	d.must(err)
	d.secrets, d.reader = secret.NewClient(d.pool, client, d.file), secret.NewReader(d.pool, schema.DefaultName, d.file)
	d.exec(`INSERT INTO pelton.flow_project (name) VALUES ('etl')`)
	d.exec(`INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) VALUES (1, 1, 'me', 'code')`)
	d.exec(`INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options) VALUES (1, 1, 'f', 'RUNNING', 'me', '{}')`)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, job_id, status, path) VALUES (1, 3, 17, 'RUNNING', 'a')`)
	d.node = secret.Node{Run: 1, No: 3, Job: 17}
	return d
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) exec(sql string) {
	d.t.Helper()
	if tag, err := d.pool.Exec(d.t.Context(), sql); err != nil || tag.RowsAffected() == 0 {
		d.t.Fatalf("%s: %s, %v", sql, tag, err)
	}
}

// keys writes the key file.
func (d *desk) keys(keys ...string) {
	d.t.Helper()
	d.must(os.WriteFile(string(d.file), []byte("# comment\n"+strings.Join(keys, "\n")+"\n"), 0o600))
}

func (d *desk) set(project, name, value string) secret.Secret {
	d.t.Helper()
	s, err := d.secrets.Set(jobs.WithActor(d.t.Context(), "alice"), project, name, []byte(value))
	d.must(err)
	return s
}

// reads expects a value of A, or an error that says something.
func (d *desk) reads(want string) {
	d.t.Helper()
	values, err := d.reader.Values(d.t.Context(), d.node, []string{"A"})
	if err != nil && !strings.Contains(err.Error(), want) || err == nil && string(values["A"]) != want {
		d.t.Errorf("A is %q, %v; want %s", values, err, want)
	}
}

func TestSetListDelete(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.keys(secret.NewKey())
	for version := range int32(2) {
		if s := d.set("etl", "A", value); s.Version != version+1 || s.SetBy != "alice" || s.Project != "etl" || s.SetAt.IsZero() {
			t.Errorf("set: %+v", s)
		}
	}
	d.set(secret.Everywhere, "A", "another")
	d.set("web", "B", "of web")
	all, err := d.secrets.List(t.Context(), secret.ListParams{})
	d.must(err)
	some, err := d.secrets.List(t.Context(), secret.ListParams{Projects: []string{"etl", secret.Everywhere}})
	d.must(err)
	if len(all) != 3 || all[0].Project != "*" || all[1].Version != 2 || len(some) != 2 || some[0].Project != "*" || some[1].Project != "etl" {
		t.Errorf("list: %+v, of some %+v", all, some)
	}
	part, err := d.secrets.List(t.Context(), secret.ListParams{After: &all[0], Limit: 1})
	d.must(err)
	if len(part) != 1 || part[0] != all[1] {
		t.Errorf("after %+v: %+v", all[0], part)
	}
	d.reads(value)
	d.must(d.secrets.Delete(t.Context(), "etl", "A"))
	d.reads("another")
	if err := d.secrets.Delete(t.Context(), "etl", "A"); !errors.Is(err, secret.ErrNotFound) || !strings.Contains(err.Error(), "secret etl/A") {
		t.Errorf("second delete: %v", err)
	}
	d.must(d.secrets.Delete(t.Context(), secret.Everywhere, "A"))
	d.reads("there is none of that name for project etl, nor for all")
	var audit string
	d.must(d.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', actor, action, target, before ->> 'version', after ->> 'version'), ', ' ORDER BY id)
		FROM pelton.audit`).Scan(&audit))
	if !strings.HasPrefix(audit, "alice secret.set secret etl/A 1, alice secret.set secret etl/A 1 2, alice secret.set secret A 1, ") ||
		!strings.Contains(audit, "secret.delete secret etl/A 2") {
		t.Errorf("audit: %s", audit)
	}
	for _, part := range []string{"correct horse", "battery", "another"} {
		for _, row := range schematest.Find(t, d.pool, part) {
			t.Errorf("stored: %s", row)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.keys(secret.NewKey())
	for _, c := range []struct{ project, name, value, says string }{
		{"etl", "", value, "name"},
		{"etl", "1A", value, "the first no digit"},
		{"etl", "a.b", value, "letters, digits and _"},
		{"", "A", value, "want the name of a project, or * for all"},
		{"a b", "A", value, "want the name of a project"},
		{"etl", "A", "abc", "has 3 bytes, want 4 or more"},
		{"etl", "A", strings.Repeat("x", secret.MaxValue+1), "at most 65536"},
		{"etl", "A", "abc\x00def", "NUL"},
	} {
		_, err := d.secrets.Set(t.Context(), c.project, c.name, []byte(c.value))
		if _, invalid := errors.AsType[*secret.InputError](err); !invalid || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "abc") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A new key is used at once, old ones read what they wrote, and after a rekey nobody needs them.
func TestRotation(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reads("does not exist")
	first, second, third := secret.NewKey(), secret.NewKey(), secret.NewKey()
	d.keys(first)
	old := d.set("etl", "A", value).Key
	d.set("etl", "B", "other")
	d.keys(first, second)
	d.reads(value)
	if s := d.set("etl", "B", "other"); s.Key == old {
		t.Error("the older key still encrypts")
	}
	d.keys(second)
	d.reads("it was encrypted with key " + old)
	done, err := d.secrets.Rekey(t.Context())
	d.must(err)
	if done.Changed != 0 || len(done.Left) != 1 || !strings.Contains(done.Left[0], "secret etl/A: ") {
		t.Errorf("rekey without the old key: %+v", done)
	}
	d.keys(first, second, third)
	done, err = d.secrets.Rekey(t.Context())
	d.must(err)
	if done.Changed != 2 || len(done.Left) != 0 {
		t.Errorf("rekey: %+v", done)
	}
	d.keys(third)
	d.reads(value)
	if done, err = d.secrets.Rekey(t.Context()); err != nil || done.Changed != 0 {
		t.Errorf("second rekey: %+v, %v", done, err)
	}
	d.keys("c2hvcnQ=")
	d.reads("line 2 is no key")
	d.keys()
	d.reads("it is empty")
	if _, err := d.secrets.Set(t.Context(), "etl", "A", []byte(value)); !errors.Is(err, secret.ErrNoKey) {
		t.Errorf("set without a key: %v", err)
	}
}

// What somebody does to rows is seen.
func TestRowsCannotBeExchanged(t *testing.T) {
	t.Parallel()
	for what, sql := range map[string]string{
		"another name's": `UPDATE pelton.secret a SET nonce = b.nonce, value = b.value, version = b.version FROM pelton.secret b
			WHERE a.project = 'etl' AND a.name = 'A' AND b.name = 'B'`,
		"another project's": `UPDATE pelton.secret a SET nonce = b.nonce, value = b.value, version = b.version FROM pelton.secret b
			WHERE a.project = 'etl' AND a.name = 'A' AND b.project = 'web'`,
		"renamed":       "",
		"the version":   `UPDATE pelton.secret SET version = 7 WHERE project = 'etl' AND name = 'A'`,
		"a byte":        `UPDATE pelton.secret SET value = set_byte(value, 0, get_byte(value, 0) # 1) WHERE project = 'etl' AND name = 'A'`,
		"a short nonce": `UPDATE pelton.secret SET nonce = '' WHERE project = 'etl' AND name = 'A'`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.keys(secret.NewKey())
			d.set("etl", "A", value)
			d.set("etl", "B", "of another name")
			d.set("web", "A", "of another project")
			d.reads(value)
			if sql == "" {
				d.exec(`DELETE FROM pelton.secret WHERE project = 'etl' AND name = 'A'`)
				d.exec(`UPDATE pelton.secret SET project = 'etl' WHERE project = 'web'`)
			} else {
				d.exec(sql)
			}
			d.reads("secret etl/A: its row was changed")
		})
	}
}

// Two values are never encrypted to the same, and a job that is not the node's newest reads nothing.
func TestNoncesAndStrangers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.keys(secret.NewKey())
	d.set("etl", "A", value)
	d.set("etl", "B", value)
	var a, b []byte
	d.must(d.pool.QueryRow(t.Context(), `SELECT (SELECT value FROM pelton.secret WHERE name = 'A'), (SELECT value FROM pelton.secret WHERE name = 'B')`).Scan(&a, &b))
	if bytes.Equal(a, b) {
		t.Error("equal values look equal")
	}
	for _, node := range []secret.Node{{Run: 1, No: 3, Job: 18}, {Run: 1, No: 2, Job: 17}, {Run: 2, No: 3, Job: 17}} {
		d.node = node
		d.reads("is not the newest of a node")
	}
}

// Those who set one secret at once get versions one after the other.
func TestSetAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.keys(secret.NewKey())
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := d.secrets.Set(t.Context(), "etl", "A", []byte(value))
			errs <- err
		}()
	}
	for range 5 {
		d.must(<-errs)
	}
	if s := d.set("etl", "A", value); s.Version != 6 {
		t.Errorf("version is %d", s.Version)
	}
	d.reads(value)
}
