package flow_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// why asks why a node is as it is.
func (h *house) why(run int64, path string) string {
	h.t.Helper()
	text, err := h.flows.Why(h.t.Context(), run, path)
	must(h.t, err)
	return text
}

// detail is what the notice of an event says.
func (h *house) detail(event string) (text string) {
	h.t.Helper()
	must(h.t, h.pool.QueryRow(h.t.Context(),
		`SELECT args->>'detail' FROM pelton.job WHERE kind = 'flow_notify' AND args->>'event' = $1`, event).Scan(&text))
	return text
}

// Whoever or whatever killed a run is named by its nodes, by the run and by the notice, also to a scheduler that was not there.
func TestWhyKilled(t *testing.T) {
	t.Parallel()
	const nodes = `
nodes:
  - {name: a, type: command, config: {command: sleep 600}}
  - {name: in, type: flow, nodes: [{name: x, type: test}]}
  - {name: b, type: noop, dependsOn: [a]}
`
	block := func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "fails" {
			return nil, flowtest.ErrFailed
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	told := flow.Notify{Failure: []string{"http://127.0.0.1:1/"}}
	check := func(t *testing.T, h *house, run int64, want string) {
		t.Helper()
		if got := h.ended(run); got[:6] != "KILLED" {
			t.Fatal(got)
		}
		for path, want := range map[string]string{"a": want, "in": want, "in:x": want, "b": want + ", before it started"} {
			equal(t, "why "+path, h.why(run, path), want)
		}
		r, err := h.flows.Get(t.Context(), run)
		must(t, err)
		if r.Reason == nil || *r.Reason != want {
			t.Errorf("the run's reason is %v, want %q", r.Reason, want)
		}
		equal(t, "notice", h.detail("killed"), want)
		why, err := h.flows.WhyRun(t.Context(), run)
		must(t, err)
		equal(t, "why the run", why, want)
	}
	running := func(h *house, run int64) {
		h.eventually(run, "a", "RUNNING")
		h.eventually(run, "in:x", "RUNNING")
	}
	t.Run("SLA", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, block)
		h.push(yaml(t, nodes))
		run := h.start("f", flow.Options{Notify: told, SLAs: []flow.SLA{{Within: flow.Duration(time.Hour), Kill: true}}})
		running(h, run)
		h.moveTimers("0")
		check(t, h, run, "the run was killed: SLA of 1h0m0s")
	})
	t.Run("person", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, block)
		h.push(yaml(t, nodes))
		run := h.start("f", flow.Options{Notify: told})
		running(h, run)
		must(t, h.flows.Kill(jobs.WithActor(t.Context(), "ann"), run))
		h.status(run, "KILLING")
		h.flows.Stop()
		_, flows := h.client(block) // knows of it from the rows
		h.flows = flows
		check(t, h, run, "the run was killed by ann")
		must(t, h.flows.Retry(t.Context(), run))
		running(h, run)
		if r, err := h.flows.Get(t.Context(), run); err != nil || r.Reason != nil {
			t.Errorf("of a run that goes on the reason is %v, %v", *r.Reason, err)
		}
		// The job of one node, not the run.
		r, err := h.flows.Get(t.Context(), run)
		must(t, err)
		_, err = h.jobs.JobCancel(t.Context(), *r.Nodes[0].JobID)
		must(t, err)
		h.eventually(run, "a", "KILLED")
		equal(t, "why a", h.why(run, "a"), "its job was cancelled")
		must(t, h.flows.Kill(t.Context(), run))
		h.ended(run)
	})
	t.Run("cancel_all", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t, block)
		h.push(yaml(t, nodes+"  - {name: fails, type: test}\n"))
		check(t, h, h.start("f", flow.Options{Notify: told, OnFailure: flow.CancelAll}), "the run was killed: fails failed, and the failure action is cancel_all")
	})
}

// A run that nobody killed says why it ended, also when it waited for another before.
func TestWhyARunEnded(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return nil, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, config: {x: "${n}"}}
  - {name: bad, type: noop, dependsOn: [a], condition: "${a:x} > 5"}
`))
	first := h.start("f", flow.Options{Params: map[string]string{"n": "1"}})
	h.eventually(first, "a", "RUNNING")
	second := h.start("f", flow.Options{Params: map[string]string{"n": "7"}, Concurrent: flow.Queue})
	third := h.start("f", flow.Options{Params: map[string]string{"n": "1"}, Concurrent: flow.Pipeline3})
	whyRun := func(run int64, want string) {
		t.Helper()
		got, err := h.flows.WhyRun(t.Context(), run)
		must(t, err)
		equal(t, "why the run", got, want)
	}
	whyRun(first, "it is RUNNING: 0 of 2 nodes have ended")
	whyRun(second, fmt.Sprintf("it waits for run %d of its flow, which is RUNNING", first))
	whyRun(third, fmt.Sprintf("it waits for the end of run %d (pipeline 3)", second))
	close(let)
	const killed = "end node bad was cancelled by its condition; on_cancelled_end: killed"
	equal(t, "first", h.ended(first), "KILLED: a=SUCCEEDED bad=CANCELLED")
	whyRun(first, killed)
	r, err := h.flows.Get(t.Context(), first)
	must(t, err)
	if r.Reason == nil || *r.Reason != killed {
		t.Errorf("the run's reason is %v", r.Reason)
	}
	equal(t, "second", h.ended(second), "SUCCEEDED: a=SUCCEEDED bad=SUCCEEDED")
	whyRun(second, "every end node has succeeded or was skipped")
	h.ended(third)
}

// Why a node is queued says what its job waits for: that nobody works its kind, or takes it, and that it runs.
func TestWhyQueued(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	flows, err := flow.NewClient(h.pool, h.jobs, &flow.Config{SchedulerOff: true, Kinds: []string{"hive", flowtest.Kind}})
	must(t, err)
	_, err = flows.Push(t.Context(), "p", yaml(t, `
nodes:
  - {name: a, type: hive}
  - {name: b, type: command, queue: etl, config: {command: "true"}}
  - {name: c, type: test}
`))
	must(t, err)
	run := h.start("f", flow.Options{})
	h.eventually(run, "c", "RUNNING")
	for path, want := range map[string]string{
		"a": "its job waits: no executor works kind hive",
		"b": "its job waits: no executor that works commands of flows (kind flow_command) takes jobs of queue etl",
		"c": "its job runs",
	} {
		equal(t, "why "+path, h.why(run, path), want)
	}
	must(t, h.jobs.QueuePause(t.Context(), "etl", nil))
	equal(t, "why b", h.why(run, "b"), "its job waits: queue etl is paused")
	must(t, h.flows.Kill(t.Context(), run))
	h.ended(run)
}
