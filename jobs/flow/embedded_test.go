package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// Queue and priority of an embedded flow are those of the nodes in it, at any depth, that have none of their own.
func TestQueueAndPriorityOfEmbeddedFlows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - name: out
    type: flow
    queue: side
    priority: 3
    nodes:
      - {name: a, type: test}
      - {name: b, type: test, queue: own, priority: 2}
      - {name: in, type: flow, priority: 4, nodes: [{name: c, type: test}, {name: each, type: test, for_each: [x]}]}
  - {name: d, type: test}
`))
	run := h.start("f", flow.Options{Queue: "run", JobPriority: 1})
	const want = "out:a side 3, out:b own 2, out:in:c side 4, out:in:each[0] side 4, d run 1"
	for _, path := range []string{"out:a", "out:b", "out:in:c", "out:in:each[0]", "d"} {
		h.eventually(run, path, "QUEUED")
	}
	var got string
	must(t, h.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', n.path, j.queue, j.priority), ', ' ORDER BY n.path = 'd', n.path)
		FROM pelton.flow_node n JOIN pelton.job j ON j.id = n.job_id WHERE n.run_id = $1`, run).Scan(&got))
	equal(t, "jobs", got, want)
	must(t, h.flows.Kill(t.Context(), run))
	h.ended(run)
}

// What does nothing at a noop is noted.
func TestNotesOfNoops(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	report, err := h.flows.Check(t.Context(), yaml(t, "nodes: [{name: n, type: noop, timeout: 1m, queue: etl, priority: 2}]"))
	must(t, err)
	for _, key := range []string{"timeout", "queue", "priority"} {
		found := false
		for _, note := range report.Notes {
			found = found || note.Node == "n" && strings.Contains(note.Reason, "the "+key+" of a noop is not used")
		}
		if !found {
			t.Errorf("no note of the %s of a noop: %v", key, report.Notes)
		}
	}
}

// A flow of code says how a run ends whose end node was cancelled by its condition.
func TestCancelledEndOfCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for end, want := range map[flow.OnCancelledEnd]string{"": "SUCCEEDED", flow.EndSucceeded: "SUCCEEDED", flow.EndKilled: "KILLED"} {
		f, err := flow.New("f").OnCancelledEnd(end).Node("a", flowtest.Kind, nil).Noop("alert").After("a").When("one_failed").Build()
		must(t, err)
		_, err = h.flows.PushFlows(t.Context(), "p", f)
		must(t, err)
		equal(t, string(end), h.ended(h.start("f", flow.Options{})), want+": a=SUCCEEDED alert=CANCELLED")
	}
	if _, err := flow.New("f").OnCancelledEnd("sometimes").Noop("a").Build(); err == nil || !strings.Contains(err.Error(), `unknown word "sometimes"`) {
		t.Errorf("an unknown word: %v", err)
	}
}

// The timeout of an embedded flow limits all of it: what runs is killed, what has not started is cancelled, and it has failed, or is tried
// again as a whole with its time once more.
func TestTimeoutOfEmbeddedFlows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "in:a" && j.Node.Try < 2 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return nil, nil
	})
	h.push(yaml(t, `
nodes:
  - name: in
    type: flow
    timeout: 1h
    retry: {max: 1}
    nodes:
      - {name: a, type: test}
      - {name: b, type: test, dependsOn: [a]}
  - {name: after, type: test, dependsOn: [in]}
`))
	run := h.start("f", flow.Options{})
	for try := range 2 { // the first attempt, and its retry
		pgtest.Eventually(t, patience, func() bool {
			r, err := h.flows.Get(t.Context(), run)
			must(t, err)
			for _, n := range r.Nodes {
				if n.Path == "in:a" {
					return n.Status == "RUNNING" && n.Try == try
				}
			}
			return false
		}, "a to run with try %d", try)
		h.moveTimers("0")
	}
	equal(t, "run", h.ended(run), "FAILED: after=CANCELLED in=FAILED in:a=KILLED in:b=CANCELLED")
	const why = "in took longer than its timeout of 1h0m0s"
	for path, want := range map[string]string{"in": why, "in:a": why, "in:b": why + ", before it started"} {
		equal(t, "why "+path, h.why(run, path), want)
	}
	must(t, h.flows.Retry(t.Context(), run))
	equal(t, "retried", h.ended(run), "SUCCEEDED: after=SUCCEEDED in=SUCCEEDED in:a=SUCCEEDED in:b=SUCCEEDED")
}

// In a pause what has started is tried again, and nothing else starts: neither the next node nor the retry of an embedded flow.
func TestRetriesInAPause(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "a" && j.Attempt == 0 || j.Node.Path == "in:x" && j.Node.Try == 0 {
			return nil, errors.Join(gates.wait(ctx, "paused"), flowtest.ErrFailed)
		}
		return nil, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, retry: {max: 1}}
  - {name: b, type: test, dependsOn: [a]}
  - {name: in, type: flow, retry: {max: 1}, nodes: [{name: x, type: test}]}
`))
	run := h.start("f", flow.Options{})
	h.eventually(run, "a", "RUNNING")
	h.eventually(run, "in:x", "RUNNING")
	must(t, h.flows.Pause(t.Context(), run))
	h.status(run, "PAUSED")
	gates.open("paused")
	h.eventually(run, "a", "SUCCEEDED") // by its retry
	h.eventually(run, "in:x", "READY")  // its flow's retry has come
	equal(t, "why b", h.why(run, "b"), "the run is paused")
	equal(t, "why x", h.why(run, "in:x"), "the run is paused")
	must(t, h.flows.Resume(t.Context(), run))
	equal(t, "resumed", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED in=SUCCEEDED in:x=SUCCEEDED")
}
