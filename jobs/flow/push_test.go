package flow_test

import (
	"strings"
	"testing"
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
}
