package flow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// Nothing but its run has a node's job run again once it has ended: neither a retry of the job nor a redrive of its dead letter, from
// Go and from SQL.
func TestJobsOfNodesDoNotRunAlone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "b" && j.Node.Try == 0 {
			return nil, flowtest.ErrFailed
		}
		return nil, nil
	})
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{})
	equal(t, "run", h.ended(run), failedAtB)
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	ids := map[string]int64{}
	for _, n := range r.Nodes {
		if n.JobID != nil {
			ids[n.Path] = *n.JobID
		}
	}
	other, err := h.jobs.Insert(t.Context(), flowtest.Args{"fail": "true"}, &river.InsertOpts{MaxAttempts: 1})
	must(t, err)
	pgtest.Eventually(t, patience, func() bool {
		_, err := h.jobs.DeadGet(t.Context(), other.Job.ID)
		return err == nil
	}, "a dead letter of no flow")

	refused := func(what, path string, err error) {
		t.Helper()
		var node *jobs.FlowNodeError
		if !errors.As(err, &node) || node.Run != run || node.Node != path || node.Error() == "" {
			t.Errorf("%s: %v, want that node %s of run %d is refused", what, err, path, run)
		}
	}
	for _, path := range []string{"a", "b"} {
		_, err = h.jobs.JobRetry(t.Context(), ids[path])
		refused("retry of a job", path, err)
	}
	_, err = h.jobs.DeadRedrive(t.Context(), ids["b"])
	refused("redrive", "b", err)
	if n, err := h.jobs.DeadFlowNodes(t.Context(), nil); err != nil || n != 1 {
		t.Errorf("%d dead letters are of flows, %v", n, err)
	}
	made, err := h.jobs.DeadRedriveMany(t.Context(), nil, 0)
	if err != nil || len(made) != 1 || made[0].DeadID != other.Job.ID {
		t.Errorf("redriven were %v, %v", made, err)
	}
	_, err = h.pool.Exec(t.Context(), `SELECT pelton.redrive($1)`, ids["b"])
	if code := pgCode(err); code != "PL003" {
		t.Errorf("redrive in SQL: %v", err)
	}
	must(t, h.flows.Retry(t.Context(), run))
	equal(t, "retried", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")

	// One that stands cancelled in the line has ended as well.
	killed := h.start("f", flow.Options{Queue: "nobodys"})
	h.eventually(killed, "a", "QUEUED")
	r, err = h.flows.Get(t.Context(), killed)
	must(t, err)
	job := *r.Nodes[0].JobID
	must(t, h.flows.Kill(t.Context(), killed))
	run = killed
	h.ended(killed)
	_, err = h.jobs.JobRetry(t.Context(), job)
	refused("retry of a job that was cancelled in the line", "a", err)
}

// pgCode is the SQLSTATE of an error.
func pgCode(err error) string {
	if answered, ok := errors.AsType[*pgconn.PgError](err); ok {
		return answered.Code
	}
	return ""
}
