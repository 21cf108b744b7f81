package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// gate lets jobs go on when a test says so.
type gate struct {
	mu    sync.Mutex
	gates map[string]chan struct{}
}

func (g *gate) of(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gates == nil {
		g.gates = map[string]chan struct{}{}
	}
	if g.gates[name] == nil {
		g.gates[name] = make(chan struct{})
	}
	return g.gates[name]
}

func (g *gate) open(name string) { close(g.of(name)) }

func (g *gate) wait(ctx context.Context, name string) error {
	select {
	case <-g.of(name):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const chain = `
nodes:
  - {name: a, type: test}
  - {name: b, type: test, dependsOn: [a]}
  - {name: c, type: test, dependsOn: [b]}
`

// Who waits for a run after asking for a retry gets the retry's end, not the one before.
func TestWaitForARetry(t *testing.T) {
	t.Parallel()
	var again atomic.Bool
	h := newHouse(t, func(context.Context, flowtest.Job) (map[string]string, error) {
		if again.Load() {
			return nil, nil
		}
		return nil, flowtest.ErrFailed
	})
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{})
	if r, err := h.flows.Ended(t.Context(), run, nil); err != nil || r.Status != "FAILED" {
		t.Fatalf("the run is %+v: %v", r, err)
	}
	again.Store(true)
	h.flows.Stop() // so that the wait begins before the retry does
	if err := h.flows.Retry(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	looked, ended := make(chan struct{}), make(chan string)
	go func() {
		var once sync.Once
		r, err := h.flows.Ended(t.Context(), run, func(*flow.RunDetail) { once.Do(func() { close(looked) }) })
		if err != nil {
			ended <- err.Error()
			return
		}
		ended <- r.Status
	}()
	<-looked
	h.flows.Start(t.Context())
	if status := <-ended; status != "SUCCEEDED" {
		t.Errorf("the wait ended with %s", status)
	}
}

// What a run refuses is told to whoever asks.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{})
	refused := func(what string, err error, want string) {
		t.Helper()
		if !errors.Is(err, flow.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	pgtest.Eventually(t, patience, func() bool {
		r, err := h.flows.Get(t.Context(), run)
		return err == nil && r.Nodes[0].Status == "RUNNING"
	}, "the first node to run")
	refused("a node that runs", h.flows.MarkSucceeded(t.Context(), run, "a"), "a runs")
	gates.open("go")
	if _, err := h.flows.Ended(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	refused("nothing failed", h.flows.Retry(t.Context(), run), "no node has failed")
	refused("no embedded flow", h.flows.Retry(t.Context(), run, "b"), "neither an embedded flow nor")
}

// A node that ends in the step that starts it over has the times of its newest try.
func TestTimesOfAnotherTry(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, config: {seconds: "${nothing}"}}
`))
	run := h.start("f", flow.Options{})
	first, err := h.flows.Ended(t.Context(), run, nil)
	must(t, err)
	must(t, h.flows.Retry(t.Context(), run))
	second, err := h.flows.Ended(t.Context(), run, nil)
	must(t, err)
	if n := second.Nodes[0]; n.Status != "FAILED" || n.Try != 1 || !n.EndedAt.After(*first.Nodes[0].EndedAt) {
		t.Errorf("the node ended at %v, then at %v in %+v", first.Nodes[0].EndedAt, n.EndedAt, n)
	}
}

func TestPauseResumeRetryRerunSucceed(t *testing.T) {
	t.Parallel()
	var gates gate
	var broken atomic.Bool
	broken.Store(true)
	var mu sync.Mutex
	var ran []string
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		mu.Lock()
		ran = append(ran, fmt.Sprintf("%s%d", j.Node.Path, j.Node.Try))
		mu.Unlock()
		if j.Node.Path == "a" && j.Node.Try == 0 {
			return nil, gates.wait(ctx, "a")
		}
		if j.Node.Path == "b" && broken.Load() {
			return nil, errors.New("broken")
		}
		return nil, nil
	})
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{})
	h.eventually(run, "a", "RUNNING")
	must(t, h.flows.Pause(t.Context(), run))
	h.status(run, "PAUSED")
	gates.open("a")
	h.eventually(run, "a", "SUCCEEDED")
	if why, err := h.flows.Why(t.Context(), run, "b"); err != nil || !strings.Contains(why, "paused") {
		t.Errorf("why b waits: %q (%v)", why, err)
	}
	h.eventually(run, "b", "READY")
	if err := h.flows.Retry(t.Context(), run); !errors.Is(err, flow.ErrLive) {
		t.Errorf("retry of a live run: %v, want ErrLive", err)
	}
	must(t, h.flows.Resume(t.Context(), run))
	equal(t, "with b broken", h.ended(run), "FAILED: a=SUCCEEDED b=FAILED c=CANCELLED")
	must(t, h.flows.MarkSucceeded(t.Context(), run, "b"))
	equal(t, "b marked", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
	must(t, h.flows.Rerun(t.Context(), run, "b"))
	equal(t, "b run again, still broken", h.ended(run), "FAILED: a=SUCCEEDED b=FAILED c=CANCELLED")
	broken.Store(false)
	must(t, h.flows.Retry(t.Context(), run))
	equal(t, "retried", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
	mu.Lock()
	defer mu.Unlock()
	equal(t, "jobs", strings.Join(ran, " "), "a0 b0 c1 b1 b2 c3")
	if err := h.flows.Rerun(t.Context(), run, "x"); !errors.Is(err, flow.ErrNotFound) {
		t.Errorf("rerun of a node that is not there: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// status waits for a run to have a status.
func (h *house) status(run int64, want string) {
	h.t.Helper()
	pgtest.Eventually(h.t, patience, func() bool {
		r, err := h.flows.Get(h.t.Context(), run)
		return err == nil && r.Status == want
	}, "run %d to be %s", run, want)
}

func TestConcurrentRuns(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		return nil, gates.wait(ctx, fmt.Sprintf("%d %s", j.Node.Run, j.Node.Path))
	})
	h.push(yaml(t, chain))
	open := func(run int64, nodes ...string) {
		for _, n := range nodes {
			gates.open(fmt.Sprintf("%d %s", run, n))
		}
	}
	first := h.start("f", flow.Options{})
	h.eventually(first, "a", "RUNNING")
	var running *flow.RunningError
	_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{Concurrent: flow.Skip}})
	if !errors.As(err, &running) || running.Run != first || !errors.Is(err, flow.ErrRunning) {
		t.Errorf("with skip: %v", err)
	}
	low := h.start("f", flow.Options{Concurrent: flow.Queue, Priority: 1})
	high := h.start("f", flow.Options{Concurrent: flow.Queue, Priority: 9})
	beside := h.start("f", flow.Options{Concurrent: flow.Allow})
	h.eventually(beside, "a", "RUNNING")
	open(first, "a", "b", "c")
	h.ended(first)
	h.status(high, "QUEUED") // one still runs
	open(beside, "a", "b", "c")
	h.ended(beside)
	h.eventually(high, "a", "RUNNING")
	h.status(low, "QUEUED")
	open(high, "a", "b", "c")
	h.ended(high)
	h.eventually(low, "a", "RUNNING")
	open(low, "a", "b", "c")
	h.ended(low)
}

func TestPipelines(t *testing.T) {
	t.Parallel()
	for level, c := range map[flow.Concurrent]struct{ holds, then string }{
		flow.Pipeline1: {"a", "a"}, // a waits for a
		flow.Pipeline2: {"a", "b"}, // a waits for b, which is a's child
		flow.Pipeline3: {"a", "c"}, // all wait for the end
	} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			var gates gate
			h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
				return nil, gates.wait(ctx, fmt.Sprintf("%d %s", j.Node.Run, j.Node.Path))
			})
			h.push(yaml(t, chain))
			first := h.start("f", flow.Options{})
			h.eventually(first, "a", "RUNNING")
			second := h.start("f", flow.Options{Concurrent: level})
			for _, node := range []string{"a", "b", "c"} {
				h.eventually(first, node, "RUNNING")
				if h.node(second, c.holds) != "READY" {
					t.Errorf("%s of the second run started while %s of the first runs", c.holds, node)
				}
				gates.open(fmt.Sprintf("%d %s", first, node))
				h.eventually(first, node, "SUCCEEDED")
				if node == c.then {
					break
				}
			}
			h.eventually(second, c.holds, "RUNNING")
			for _, node := range []string{"a", "b", "c"} {
				gates.open(fmt.Sprintf("%d %s", second, node))
				if node > c.then {
					gates.open(fmt.Sprintf("%d %s", first, node))
				}
			}
			equal(t, "first", h.ended(first), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
			equal(t, "second", h.ended(second), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
		})
	}
}

// node is a node's status now.
func (h *house) node(run int64, path string) string {
	h.t.Helper()
	r, err := h.flows.Get(h.t.Context(), run)
	must(h.t, err)
	for _, n := range r.Nodes {
		if n.Path == path {
			return n.Status
		}
	}
	h.t.Fatalf("run %d has no node %s", run, path)
	return ""
}

func TestForEachAndEmbeddedRetry(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]string{}
	tries := atomic.Int64{}
	h := newHouse(t, func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case j.Node.Path == "list":
			return map[string]string{"items": `["x","y","z"]`}, nil
		case strings.HasPrefix(j.Node.Path, "each["):
			seen[j.Node.Path] = j.Args["text"]
			return map[string]string{"got": j.Args["text"]}, nil
		case j.Node.Path == "inner:second" && tries.Add(1) < 3:
			return nil, errors.New("not yet")
		}
		return nil, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: list, type: test}
  - {name: each, type: test, dependsOn: [list], for_each: "${list:items}", config: {text: "${item} ${item.index}"}}
  - {name: after, type: test, dependsOn: [each]}
  - name: inner
    type: flow
    dependsOn: [after]
    retry: {max: 2, backoff: 10ms}
    nodes:
      - {name: first, type: test}
      - {name: second, type: test, dependsOn: [first]}
`))
	equal(t, "run", h.ended(h.start("f", flow.Options{})),
		"SUCCEEDED: after=SUCCEEDED each=SUCCEEDED each[0]=SUCCEEDED each[1]=SUCCEEDED each[2]=SUCCEEDED inner=SUCCEEDED inner:first=SUCCEEDED inner:second=SUCCEEDED list=SUCCEEDED")
	equal(t, "items", fmt.Sprint(seen), "map[each[0]:x 0 each[1]:y 1 each[2]:z 2]")
}

func TestNoticesAndSLA(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	alerted := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n struct{ Event, Node, Status, Detail string }
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &n); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.TrimSpace(n.Event+" "+n.Node))
		if n.Event == "sla_missed" {
			got[len(got)-1] += ": " + n.Detail
			close(alerted)
		}
	}))
	t.Cleanup(server.Close)
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "a" {
			select {
			case <-alerted:
			case <-ctx.Done(): // until its limit
			}
			if j.Node.Run > 1 {
				<-ctx.Done()
			}
			return nil, flowtest.ErrFailed
		}
		return nil, nil
	})
	h.push(yaml(t, chain))
	to := []string{server.URL}
	run := h.start("f", flow.Options{
		Notify: flow.Notify{Success: to, Failure: to, FirstFailure: to},
		SLAs:   []flow.SLA{{Node: "a", Within: flow.Duration(300 * time.Millisecond), Alert: true}},
	})
	equal(t, "run", h.ended(run), "FAILED: a=FAILED b=CANCELLED c=CANCELLED")
	pgtest.Eventually(t, patience, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) >= 3
	}, "notices of the limit that was missed and of the failure")
	mu.Lock()
	slices.Sort(got)
	equal(t, "notices", strings.Join(got, ", "), "failed, first_failure a, sla_missed a: it was to end within 300ms, and has not ended")
	mu.Unlock()
	limited := h.start("f", flow.Options{SLAs: []flow.SLA{{Node: "a", Within: flow.Duration(200 * time.Millisecond), Kill: true}}})
	equal(t, "with a node that was killed", h.ended(limited), "FAILED: a=FAILED b=CANCELLED c=CANCELLED")
	killed := h.start("f", flow.Options{SLAs: []flow.SLA{{Within: flow.Duration(200 * time.Millisecond), Kill: true}}})
	equal(t, "killed", h.ended(killed), "KILLED: a=KILLED b=CANCELLED c=CANCELLED")
}

// A failure is told when no retry is left, once; and a node's own retries: 0 beats what is around it.
func TestAlertAfterTheLastRetry(t *testing.T) {
	t.Parallel()
	h := &house{t: t, pool: schematest.Pool(t)}
	notices := func(ctx context.Context) (n int) {
		if err := h.pool.QueryRow(ctx, "SELECT count(*) FROM pelton.job WHERE kind = 'flow_notify'").Scan(&n); err != nil {
			t.Error(err)
		}
		return n
	}
	var attempts, once atomic.Int64
	h.jobs, h.flows = h.client(func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "once" {
			once.Add(1)
			return nil, flowtest.ErrFailed
		}
		if n := notices(ctx); n != 0 {
			t.Errorf("attempt %d began with %d notices sent", j.Attempt, n)
		}
		attempts.Add(1)
		return nil, flowtest.ErrFailed
	})
	h.push(yaml(t, `
config: {retries: 2, retry.backoff: 10}
nodes:
  - {name: a, type: test}
  - {name: once, type: test, dependsOn: [a], condition: all_done, config: {retries: 0}}
`))
	to := []string{"http://127.0.0.1:1/"}
	run := h.start("f", flow.Options{Notify: flow.Notify{Failure: to, FirstFailure: to}})
	equal(t, "run", h.ended(run), "FAILED: a=FAILED once=FAILED")
	if n := notices(t.Context()); n != 2 || attempts.Load() != 3 || once.Load() != 1 {
		t.Errorf("%d notices, %d attempts of a, %d of the other; want 2, 3 and 1", n, attempts.Load(), once.Load())
	}
}

// A job that a person cancels while it waits, or that is gone, has no executor to report its end.
func TestMissedReports(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{Queue: "nobodys"})
	h.eventually(run, "a", "QUEUED")
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	if _, err := h.jobs.JobCancel(t.Context(), *r.Nodes[0].JobID); err != nil {
		t.Fatal(err)
	}
	equal(t, "run", h.ended(run), "KILLED: a=KILLED b=CANCELLED c=CANCELLED")
}

// A run that followed another and was killed while it was held is retried after that one has ended, when nobody tells it any more.
func TestRetryOfAHeldRun(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Run == 1 {
			return nil, gates.wait(ctx, "first")
		}
		return nil, nil
	})
	h.push(yaml(t, chain))
	first := h.start("f", flow.Options{})
	h.eventually(first, "a", "RUNNING")
	second := h.start("f", flow.Options{Concurrent: flow.Pipeline1})
	h.status(second, "RUNNING")
	must(t, h.flows.Kill(t.Context(), second))
	equal(t, "killed", h.ended(second), "KILLED: a=CANCELLED b=CANCELLED c=CANCELLED")
	gates.open("first")
	h.ended(first)
	must(t, h.flows.Retry(t.Context(), second))
	equal(t, "retried", h.ended(second), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED")
}

// Reports of runs that are gone, and a transaction that holds a project for long, hold up no other run.
func TestOthersAreNotHeldUp(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, chain))
	_, err := h.pool.Exec(t.Context(), `INSERT INTO pelton.flow_report (run_id, action) SELECT 1000000 + g, 'begin' FROM generate_series(1, 500) g`)
	must(t, err)
	_, err = h.pool.Exec(t.Context(), `INSERT INTO pelton.flow_report (run_id, action) SELECT -g, 'begin' FROM generate_series(1, 500) g`)
	must(t, err)
	if _, err := h.flows.Push(t.Context(), "other", yaml(t, chain)); err != nil {
		t.Fatal(err)
	}
	tx, err := h.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	before := h.start("f", flow.Options{})
	if _, err := h.flows.RunTx(t.Context(), tx, flow.RunParams{Project: "p", Flow: "f"}); err != nil {
		t.Fatal(err)
	}
	run, err := h.flows.Run(t.Context(), flow.RunParams{Project: "other", Flow: "f"})
	must(t, err)
	const want = "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED"
	equal(t, "of the project that is held", h.ended(before), want)
	equal(t, "of another project", h.ended(run), want)
	must(t, tx.Commit(t.Context()))
	pgtest.Eventually(t, patience, func() bool {
		var left int
		err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.flow_report WHERE run_id < 0 OR run_id > 1000000`).Scan(&left)
		return err == nil && left == 0
	}, "the orphans to go")
}

// A node without retries whose process dies runs again elsewhere. If its program fails then, it has failed.
func TestNodeIsLostWithItsProcess(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, "nodes:\n  - {name: a, type: test}\n  - {name: b, type: test}\n"))
	run := h.start("f", flow.Options{Queue: "elsewhere", OnFailure: flow.FinishPossible})
	h.eventually(run, "a", "QUEUED")
	h.eventually(run, "b", "QUEUED")
	// As a process that took the jobs and died leaves them.
	_, err := h.pool.Exec(t.Context(), `
		WITH dead AS (INSERT INTO pelton.executor (pid, name, host, died_at) VALUES (1, 'dead', 'h', now()) RETURNING id),
			taken AS (DELETE FROM pelton.job_ready WHERE line = 'elsewhere' RETURNING job_ids, seq)
		INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT id, seq, job_ids FROM taken, dead`)
	must(t, err)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &flowtest.Worker{Decide: func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "b" {
			return nil, flowtest.ErrFailed
		}
		return nil, nil
	}})
	elsewhere, err := jobs.NewClient(h.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"elsewhere": {MaxWorkers: 1}}, Workers: workers, DutiesOff: true, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	must(t, elsewhere.Start(t.Context()))
	t.Cleanup(func() { must(t, elsewhere.StopAndCancel(context.Background())) })
	equal(t, "run", h.ended(run), "FAILED: a=SUCCEEDED b=FAILED")
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	for i, want := range []string{"lost completed", "lost discarded"} {
		equal(t, r.Nodes[i].Path, h.ran(*r.Nodes[i].JobID), want)
	}
}

// ran are the outcomes of a job's runs.
func (h *house) ran(job int64) (outcomes string) {
	h.t.Helper()
	if err := h.pool.QueryRow(h.t.Context(), `SELECT coalesce(string_agg(outcome::text, ' ' ORDER BY run), '') FROM pelton.job_attempt WHERE job_id = $1`, job).
		Scan(&outcomes); err != nil {
		h.t.Fatal(err)
	}
	return outcomes
}

// The dead letter of a node's job goes when the node is started over or marked as succeeded, not before, and others stay.
func TestDeadLettersOfNodesThatWereLookedAfter(t *testing.T) {
	t.Parallel()
	var again atomic.Bool
	h := newHouse(t, func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "a" && again.Load() {
			return nil, nil
		}
		return nil, flowtest.ErrFailed
	})
	h.push(yaml(t, "nodes:\n  - {name: a, type: test}\n  - {name: b, type: test}\n"))
	run, other := h.start("f", flow.Options{}), h.start("f", flow.Options{})
	letters := func() string {
		t.Helper()
		var paths string
		if err := h.pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(concat(d.metadata #>> '{pelton:flow,run}', d.metadata #>> '{pelton:flow,path}'), ' '
			ORDER BY 1), '') FROM (SELECT * FROM pelton.job_dead ORDER BY job_id) d`).Scan(&paths); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(paths)
		slices.Sort(words)
		return strings.Join(words, " ")
	}
	for _, id := range []int64{run, other} {
		if r, err := h.flows.Ended(t.Context(), id, nil); err != nil || r.Status != "FAILED" {
			t.Fatalf("the run is %+v: %v", r, err)
		}
	}
	if got, want := letters(), fmt.Sprintf("%[1]da %[1]db %[2]da %[2]db", run, other); got != want {
		t.Fatalf("dead letters are of %q, want %q", got, want)
	}
	again.Store(true)
	must(t, h.flows.Retry(t.Context(), run))
	if r, err := h.flows.Ended(t.Context(), run, nil); err != nil || r.Status != "FAILED" {
		t.Fatalf("the run is %+v: %v", r, err)
	}
	if got, want := letters(), fmt.Sprintf("%[1]db %[2]da %[2]db", run, other); got != want {
		t.Errorf("after the retry dead letters are of %q, want %q: b has failed again", got, want)
	}
	var newest bool
	if err := h.pool.QueryRow(t.Context(), `SELECT n.job_id = d.job_id FROM pelton.flow_node n, pelton.job_dead d
		WHERE n.run_id = $1 AND n.path = 'b' AND d.metadata #>> '{pelton:flow,run}' = $1::text`, run).Scan(&newest); err != nil || !newest {
		t.Errorf("b's letter is not that of its last job (%v)", err)
	}
	must(t, h.flows.MarkSucceeded(t.Context(), run, "b"))
	if r, err := h.flows.Ended(t.Context(), run, nil); err != nil || r.Status != "SUCCEEDED" {
		t.Fatalf("the run is %+v: %v", r, err)
	}
	if got, want := letters(), fmt.Sprintf("%[1]da %[1]db", other); got != want {
		t.Errorf("after b was marked dead letters are of %q, want %q", got, want)
	}
}
