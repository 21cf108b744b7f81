package flow_test

import (
	"context"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// A flow that takes longer than everything is kept: the jobs of its first nodes are gone with their partitions, old runs and
// versions are swept meanwhile, and it goes on with what its rows hold.
func TestFlowLongerThanTheRetention(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		switch j.Node.Path {
		case "a":
			return map[string]string{"word": "kept"}, nil
		case "b":
			return nil, gates.wait(ctx, "b")
		}
		return map[string]string{"got": j.Args["text"]}, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: a, type: test}
  - {name: b, type: test, dependsOn: [a]}
  - {name: c, type: test, dependsOn: [a, b], config: {text: "${word}"}}
`))
	run := h.start("f", flow.Options{})
	h.eventually(run, "b", "RUNNING")
	h.push(yaml(t, "nodes: [{name: other, type: noop}]\n"))
	for _, table := range []string{"job", "job_attempt", "job_log"} {
		id := map[string]string{"job": "id"}[table]
		if id == "" {
			id = "job_id"
		}
		_, err := h.pool.Exec(t.Context(), `DELETE FROM pelton.`+table+` WHERE `+id+` = (SELECT job_id FROM pelton.flow_node WHERE run_id = $1 AND path = 'a')`, run)
		must(t, err)
	}
	s := store.New(h.pool, "pelton")
	if runs, err := s.SweepRuns(t.Context(), 0, 100); err != nil || runs != 0 {
		t.Errorf("swept %d runs, want none (%v)", runs, err)
	}
	if versions, _, err := s.SweepVersions(t.Context(), 0, 0, 100); err != nil || versions != 1 {
		t.Errorf("swept %d versions, want the one without a run (%v)", versions, err)
	}
	gates.open("b")
	equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	equal(t, "outputs of c", string(r.Nodes[2].Outputs), `{"got":"kept"}`)
	pgtest.Eventually(t, patience, func() bool { // the run may still be locked, by the step that looks for the next one
		_, err := s.SweepRuns(t.Context(), 0, 100)
		must(t, err)
		_, err = s.SweepNodes(t.Context(), 100)
		must(t, err)
		_, _, err = s.SweepVersions(t.Context(), 0, 0, 100)
		must(t, err)
		var left int
		must(t, h.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_run) + (SELECT count(*) FROM pelton.flow_node)
			+ (SELECT count(*) FROM pelton.flow_version) + (SELECT count(*) FROM pelton.flow_content)`).Scan(&left))
		return left == 0
	}, "rows are left of a run that ended")
}
