package flow_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// gated has the jobs of a house wait at gates named "RUN NODE", and b of a first try fail.
func gated(gates *gate) decideFunc {
	return func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "b" && j.Node.Try == 0 {
			return nil, flowtest.ErrFailed
		}
		return nil, gates.wait(ctx, fmt.Sprintf("%d %s", j.Node.Run, j.Node.Path))
	}
}

const failedAtB = "FAILED: a=SUCCEEDED b=FAILED c=CANCELLED"

// failed makes a run that has failed at b.
func (h *house) failed(gates *gate, o flow.Options) int64 {
	h.t.Helper()
	run := h.start("f", o)
	gates.open(fmt.Sprintf("%d a", run))
	equal(h.t, "first", h.ended(run), failedAtB)
	return run
}

// live counts the runs that have not ended.
func (h *house) live() int {
	h.t.Helper()
	runs, err := h.flows.Runs(h.t.Context(), flow.RunFilter{Live: true}, 10)
	must(h.t, err)
	return len(runs)
}

// A run whose option is skip goes on only if no other of its flow is live, whichever way it is started over; and of two that are
// asked for at once one does.
func TestRetryUnderSkip(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, gated(&gates))
	h.push(yaml(t, chain))
	one, two := h.failed(&gates, flow.Options{Concurrent: flow.Skip}), h.failed(&gates, flow.Options{Concurrent: flow.Skip})
	other := h.start("f", flow.Options{})
	for what, err := range map[string]error{
		"retry": h.flows.Retry(t.Context(), one), "rerun": h.flows.Rerun(t.Context(), one, "b"), "succeed": h.flows.MarkSucceeded(t.Context(), one, "b"),
	} {
		var running *flow.RunningError
		want := fmt.Sprintf(`%s run %d: run %d of flow f has not ended, and concurrent is "skip"`, what, one, other)
		if !errors.As(err, &running) || running.Run != other || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	must(t, h.flows.Kill(t.Context(), other))
	h.ended(other)
	h.flows.Stop() // so that nothing is done of what is asked
	errs := make(chan error)
	for _, run := range []int64{one, two} {
		go func() { errs <- h.flows.Retry(t.Context(), run) }()
	}
	if first, second := <-errs, <-errs; (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), flow.ErrRunning) {
		t.Errorf("two retries at once: %v, %v", first, second)
	}
	if h.live() != 1 {
		t.Errorf("%d runs are live", h.live())
	}
	if _, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{Concurrent: flow.Skip}}); !errors.Is(err, flow.ErrRunning) {
		t.Errorf("a new run beside one that is to go on: %v", err)
	}
}

// A run whose option is queue waits for its turn, by priority, with its nodes as they will be; one that is killed while it waits has ended.
func TestRetryUnderQueue(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, gated(&gates))
	h.push(yaml(t, chain))
	low, high := h.failed(&gates, flow.Options{Concurrent: flow.Queue, Priority: 1}), h.failed(&gates, flow.Options{Concurrent: flow.Queue})
	other := h.start("f", flow.Options{})
	h.eventually(other, "a", "RUNNING")
	must(t, h.flows.Retry(t.Context(), low))
	must(t, h.flows.Rerun(t.Context(), high, "a"))
	h.eventually(low, "b", "READY")
	h.eventually(high, "a", "READY")
	for _, run := range []int64{low, high} {
		h.status(run, "QUEUED")
		if err := h.flows.Retry(t.Context(), run); !errors.Is(err, flow.ErrLive) {
			t.Errorf("another retry of one that waits: %v", err)
		}
	}
	gates.open(fmt.Sprintf("%d a", other))
	equal(t, "other", h.ended(other), failedAtB)
	h.eventually(high, "b", "RUNNING")
	h.status(low, "QUEUED")
	must(t, h.flows.Kill(t.Context(), low))
	equal(t, "killed in the queue", h.ended(low), "KILLED: a=SUCCEEDED b=CANCELLED c=CANCELLED")
	must(t, h.flows.Retry(t.Context(), low))
	h.status(low, "QUEUED")
	for _, run := range []int64{high, low} {
		gates.open(fmt.Sprintf("%d b", run))
		gates.open(fmt.Sprintf("%d c", run))
		equal(t, "at last", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
	}
}

// A run that has ended and is asked to go on before anybody has looked for the next one of the queue is that next one itself.
func TestRetryIsTheNextOfTheQueue(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, gated(&gates))
	h.push(yaml(t, chain))
	run := h.failed(&gates, flow.Options{Concurrent: flow.Queue, Priority: 9})
	pgtest.Eventually(t, patience, func() bool {
		var left int
		err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.flow_report`).Scan(&left)
		return err == nil && left == 0
	}, "all reports to be taken")
	h.flows.Stop()
	waits := h.start("f", flow.Options{}) // it begins when there is an engine again
	must(t, h.flows.Retry(t.Context(), run))
	must(t, h.flows.Kill(t.Context(), waits))
	_, err := h.pool.Exec(t.Context(), `INSERT INTO pelton.flow_report (run_id, action) VALUES ($1, 'next')`, run)
	must(t, err)
	h.flows.Start(t.Context())
	h.ended(waits)
	gates.open(fmt.Sprintf("%d b", run))
	gates.open(fmt.Sprintf("%d c", run))
	equal(t, "retried", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
}

// A run of a pipeline follows the newest live one when it goes on; one that had followed it does not wait for it again.
func TestRetryUnderPipelines(t *testing.T) {
	t.Parallel()
	for level, holds := range map[flow.Concurrent]string{flow.Pipeline1: "b", flow.Pipeline2: "c", flow.Pipeline3: "end"} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			var gates gate
			h := newHouse(t, gated(&gates))
			h.push(yaml(t, chain))
			first := h.failed(&gates, flow.Options{Concurrent: level})
			second := h.start("f", flow.Options{Concurrent: level})
			gates.open(fmt.Sprintf("%d a", second))
			h.ended(second)
			must(t, h.flows.Rerun(t.Context(), second, "a")) // alone: it follows nobody
			h.eventually(second, "b", "RUNNING")
			must(t, h.flows.Retry(t.Context(), first))
			r, err := h.flows.Get(t.Context(), first)
			must(t, err)
			if r.Before == nil || *r.Before != second {
				t.Fatalf("it follows %v, want run %d", r.Before, second)
			}
			h.eventually(first, "b", "READY")
			if why, err := h.flows.Why(t.Context(), first, "b"); level != flow.Pipeline3 && (err != nil || !strings.Contains(why, fmt.Sprintf("held by run %d", second))) {
				t.Errorf("why b waits: %q, %v", why, err)
			}
			gates.open(fmt.Sprintf("%d b", second))
			h.eventually(second, "c", "RUNNING")
			if holds != "b" {
				if is := h.node(first, "b"); is != "READY" {
					t.Errorf("b is %s while c of the run before runs", is)
				}
			}
			must(t, h.flows.Kill(t.Context(), second))
			h.ended(second)
			h.eventually(first, "b", "RUNNING")
			// The second goes on behind the first, which was behind it.
			must(t, h.flows.Retry(t.Context(), second))
			gates.open(fmt.Sprintf("%d c", second))
			gates.open(fmt.Sprintf("%d b", first))
			gates.open(fmt.Sprintf("%d c", first))
			equal(t, "first", h.ended(first), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
			equal(t, "second", h.ended(second), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
		})
	}
}

// Two runs that would follow each other do not wait for ever.
func TestRetryOfAFollowedRun(t *testing.T) {
	t.Parallel()
	for _, level := range []flow.Concurrent{flow.Queue, flow.Pipeline1, flow.Pipeline2, flow.Pipeline3} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			var gates gate
			h := newHouse(t, gated(&gates))
			h.push(yaml(t, chain))
			first := h.start("f", flow.Options{Concurrent: level})
			h.eventually(first, "a", "RUNNING")
			second := h.start("f", flow.Options{Concurrent: flow.Pipeline3}) // waits for all of the first
			tx, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
			must(t, err)
			_, err = tx.Exec(t.Context(), `SELECT FROM pelton.flow_run WHERE id = $1 FOR UPDATE`, second) // it hears of no end
			must(t, err)
			must(t, h.flows.Kill(t.Context(), first))
			h.ended(first)
			h.flows.Stop()
			must(t, tx.Rollback(t.Context()))
			must(t, h.flows.Rerun(t.Context(), first, "a"))
			h.flows.Start(t.Context())
			for _, run := range []int64{second, first} {
				for _, node := range []string{"a", "b", "c"} {
					gates.open(fmt.Sprintf("%d %s", run, node))
				}
			}
			equal(t, "second", h.ended(second), failedAtB)
			if got := h.ended(first); !strings.HasPrefix(got, "SUCCEEDED") {
				t.Errorf("first: %s", got)
			}
		})
	}
}

// A run that is queued does not wait for runs of a pipeline that wait for it, nor for those that wait for another queued one.
func TestQueueBesidePipelines(t *testing.T) {
	t.Parallel()
	var gates gate
	var mu sync.Mutex
	var order []int64
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		mu.Lock()
		order = append(order, j.Node.Run)
		mu.Unlock()
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, "nodes: [{name: a, type: test}]"))
	runs := []int64{h.start("f", flow.Options{})}
	for _, o := range []flow.Options{
		{Concurrent: flow.Queue},
		{Concurrent: flow.Pipeline1},
		{Concurrent: flow.Queue, Priority: 9},
		{Concurrent: flow.Pipeline2},
		{Concurrent: flow.Pipeline3},
	} {
		runs = append(runs, h.start("f", o))
	}
	h.eventually(runs[0], "a", "RUNNING")
	h.status(runs[2], "RUNNING") // it has begun, and a is held
	gates.open("go")
	for _, run := range runs {
		equal(t, fmt.Sprint("run ", run), h.ended(run), "SUCCEEDED: a=SUCCEEDED")
	}
	want := []int64{runs[0], runs[3], runs[4], runs[5], runs[1], runs[2]}
	if !slices.Equal(order, want) {
		t.Errorf("they ran in the order %v, want %v", order, want)
	}
}
