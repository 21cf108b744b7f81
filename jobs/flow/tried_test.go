package flow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// A node whose job is tried again shows what was tried so far: while it waits, while it runs, and after the end its last attempt.
func TestWhatWasTried(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Attempt < 2 {
			return nil, flowtest.ErrFailed
		}
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, retry: {max: 5, backoff: 1h}}
  - {name: b, type: test, dependsOn: [a]}
`))
	run := h.start("f", flow.Options{})
	see := func(status string, attempt, tried int) flow.NodeRow {
		t.Helper()
		h.eventually(run, "a", status)
		r, err := h.flows.Get(t.Context(), run)
		must(t, err)
		n := r.Nodes[0]
		if n.Attempt != attempt || len(n.Tried) != tried || len(r.Nodes[1].Tried) != 0 {
			t.Fatalf("%s: a is %+v", status, n)
		}
		for i, a := range n.Tried {
			if a.Attempt != i || a.Outcome != "errored" || a.StartedAt == nil || a.EndedAt.Before(*a.StartedAt) || a.Error == nil || *a.Error != flowtest.ErrFailed.Error() {
				t.Errorf("%s: attempt %d is %+v", status, i, a)
			}
		}
		return n
	}
	h.attempts(run, "a", 1)
	n := see("QUEUED", 0, 1)
	if n.RetryAt == nil || n.RetryAt.Sub(n.Tried[0].EndedAt) < time.Hour {
		t.Errorf("its retry is due at %v", n.RetryAt)
	}
	why, err := h.flows.Why(t.Context(), run, "a")
	must(t, err)
	equal(t, "why", why, fmt.Sprintf("attempt 0 errored and the next is due at %s: this job was to fail", n.RetryAt.UTC().Format(time.RFC3339)))
	job := *n.JobID
	// Its run waits for the next attempt, which may be hurried and not put off.
	_, err = h.jobs.JobReschedule(t.Context(), job, time.Now().Add(time.Hour), nil)
	if node, is := errors.AsType[*jobs.FlowNodeError](err); !is || node.Run != run || node.Node != "a" {
		t.Errorf("reschedule of a node's job: %v", err)
	}
	_, err = h.jobs.JobRetry(t.Context(), job)
	must(t, err)
	h.attempts(run, "a", 2)
	see("QUEUED", 1, 2)
	_, err = h.jobs.JobRetry(t.Context(), job)
	must(t, err)
	if n := see("RUNNING", 2, 2); n.RetryAt != nil {
		t.Errorf("a retry is due at %v while it runs", n.RetryAt)
	}
	gates.open("go")
	h.ended(run)
	see("SUCCEEDED", 2, 0)
}
