package flow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// Of a node, its run's rows are blanked too, once the run has ended; it does not go on again.
func TestEraseOfANode(t *testing.T) {
	t.Parallel()
	const marker = "janedoe"
	g := &gate{}
	h := newHouse(t, func(ctx context.Context, job flowtest.Job) (map[string]string, error) {
		if job.Node.Path == "hold" {
			return nil, g.wait(ctx, "hold")
		}
		return map[string]string{"out": "of " + job.Args["who"] + job.Args["item"]}, errors.Join(map[bool]error{true: errors.New("not for " + marker)}[job.Node.Path == "bad"])
	})
	h.push(yaml(t, `
on_failure: finish_possible
nodes:
  - name: outer
    type: flow
    nodes:
      - name: each
        type: test
        for_each: ["${who}"]
  - name: bad
    type: test
  - name: cond
    type: noop
    condition: all_done && ${hold:who} == "y"
    dependsOn: [hold]
  - name: last
    type: noop
    condition: all_done
    dependsOn: [cond]
  - name: hold
    type: test
`))
	run := h.start("f", flow.Options{Notify: flow.Notify{Failure: []string{"http://127.0.0.1:9/hook"}, FirstFailure: []string{"http://127.0.0.1:9/first"}}, Params: map[string]string{"who": marker}, NodeParams: map[string]map[string]string{"bad": {"more": marker}}})
	h.eventually(run, "outer:each", "SUCCEEDED")
	h.eventually(run, "bad", "FAILED")
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	var ids []int64
	for _, n := range r.Nodes {
		if n.JobID != nil && n.Path != "hold" {
			ids = append(ids, *n.JobID)
		}
	}
	if len(ids) != 2 {
		t.Fatalf("jobs are %v", ids)
	}
	_, err = h.jobs.JobErase(t.Context(), ids[0])
	if early, is := errors.AsType[*jobs.EraseError](err); !is || early.Erased || !strings.Contains(err.Error(), fmt.Sprintf("of run %d, which has not ended", run)) {
		t.Errorf("while the run goes on: %v", err)
	}
	g.open("hold")
	h.ended(run)
	r, err = h.flows.Get(t.Context(), run)
	must(t, err)
	for _, n := range r.Nodes {
		if n.JobID != nil && n.Path == "hold" {
			ids = append(ids, *n.JobID) // the run's parameters are in its args too
		}
	}
	told, quoted := 0, false // what quotes it: notices, and the reason of a condition
	for _, row := range schematest.Find(t, h.pool, marker) {
		if strings.HasPrefix(row, "job: ") && strings.Contains(row, "flow_notify") {
			told++
		}
		quoted = quoted || strings.HasPrefix(row, "flow_node: ") && strings.Contains(row, ",cond,")
	}
	if told != 2 || !quoted {
		t.Fatalf("%d notices tell of it, a condition does: %v", told, quoted)
	}
	nodes, runs, notices := 0, 0, 0
	for _, id := range ids {
		done, err := h.jobs.JobErase(t.Context(), id)
		must(t, err)
		nodes, runs, notices = nodes+done.Nodes, runs+done.Runs, notices+done.Notices
	}
	if nodes < 5 || runs != 1 || notices != 2 {
		t.Errorf("%d nodes, %d runs and %d notices were blanked", nodes, runs, notices)
	}
	for _, row := range schematest.Find(t, h.pool, marker) {
		t.Errorf("it is in %s", row)
	}
	r, err = h.flows.Get(t.Context(), run)
	must(t, err)
	if got := describe(r); !strings.Contains(got, "bad=FAILED") || !strings.Contains(got, "outer:each[0]=SUCCEEDED") {
		t.Errorf("the run is %s", got)
	}
	for what, err := range map[string]error{
		"retry": h.flows.Retry(t.Context(), run), "rerun": h.flows.Rerun(t.Context(), run, "bad"), "succeed": h.flows.MarkSucceeded(t.Context(), run, "bad"),
	} {
		if !errors.Is(err, flow.ErrRefused) || !strings.Contains(err.Error(), "was erased: start a new run") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An erase waits for the engine at the run, with nothing in its hands that the engine needs to start the node over.
func TestEraseWhileItsRunIsLocked(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(context.Context, flowtest.Job) (map[string]string, error) { return nil, errors.New("no") })
	h.push(yaml(t, "nodes:\n  - {name: bad, type: test}\n"))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), "FAILED: bad=FAILED")
	var job int64
	must(t, h.pool.QueryRow(t.Context(), `SELECT job_id FROM pelton.flow_node`).Scan(&job))
	tx, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	must(t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM pelton.flow_run FOR UPDATE`)
	must(t, err)
	erased := make(chan error, 1)
	go func() {
		_, err := h.jobs.JobErase(t.Context(), job)
		erased <- err
	}()
	pgtest.Eventually(t, patience, func() bool {
		var waits bool
		must(t, h.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%erase_job%')`).Scan(&waits))
		return waits
	}, "the erase to wait for the run")
	gone, err := tx.Exec(t.Context(), `DELETE FROM pelton.job_dead WHERE job_id = $1`, job)
	must(t, err)
	if gone.RowsAffected() != 1 {
		t.Errorf("%d letters, want 1", gone.RowsAffected())
	}
	must(t, tx.Commit(t.Context()))
	must(t, <-erased)
}
