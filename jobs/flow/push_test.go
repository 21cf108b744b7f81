package flow_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
)

// A version and the row that says who pushed it are stored together, or neither is.
func TestPushAndItsAuditAreOne(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, chain))
	_, err := h.pool.Exec(t.Context(), `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no audit today'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON pelton.audit FOR EACH ROW EXECUTE FUNCTION refuse()`)
	must(t, err)
	if _, err := h.flows.Push(t.Context(), "p", yaml(t, chain)); err == nil || !strings.Contains(err.Error(), "no audit today") {
		t.Errorf("push without an audit: %v", err)
	}
	_, err = h.pool.Exec(t.Context(), `DROP TRIGGER refuse ON pelton.audit;
		CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pelton.flow_version DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	must(t, err)
	if _, err := h.flows.Push(t.Context(), "p", yaml(t, chain)); err == nil {
		t.Error("a push whose commit fails is done")
	}
	var versions, rows int
	must(t, h.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_version),
		(SELECT count(*) FROM pelton.audit WHERE action = 'flow.push' AND target = 'project p')`).Scan(&versions, &rows))
	if versions != 1 || rows != 1 {
		t.Errorf("%d versions and %d audit rows, want one of each", versions, rows)
	}
	_, err = h.pool.Exec(t.Context(), `DROP TRIGGER refuse ON pelton.flow_version`)
	must(t, err)
	h.push(yaml(t, chain))
	var pushes string
	must(t, h.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', coalesce(before->>'version', 'none'), '->', after->>'version'), ', ' ORDER BY id)
		FROM pelton.audit WHERE action = 'flow.push'`).Scan(&pushes))
	equal(t, "pushes in the audit", pushes, "none -> 1, 1 -> 2")
}

// A file that cannot be read is one fault among the others, and keeps the upload from being stored.
func TestALinkAmongFaults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dir := write(t, map[string]string{"top/a.job": "type=noop\ndependencies=nope\n", "top/b.job": "type=noop\n"})
	must(t, os.Symlink("b.job", filepath.Join(dir, "top", "c.job")))
	var faults *flow.FaultsError
	_, err := h.flows.Push(t.Context(), "p", dir)
	if !errors.As(err, &faults) || len(faults.Faults) != 2 || faults.Faults[0].Node != "a" || faults.Faults[1].File != "c.job" {
		t.Errorf("pushed: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "top", "a.job"), []byte("type=noop\n"), 0o600))
	report, err := h.flows.Push(t.Context(), "p", dir)
	if !errors.As(err, &faults) || len(report.Faults) != 1 || report.Version != nil {
		t.Errorf("pushed with nothing wrong but a link: %+v, %v", report, err)
	}
}
