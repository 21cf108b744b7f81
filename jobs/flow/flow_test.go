package flow_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// house is a queue with an executor and a scheduler of flows.
type house struct {
	t     *testing.T
	pool  *pgxpool.Pool
	jobs  *jobs.Client
	flows *flow.Client
	keys  secret.Source // of secrets
}

// decide decides how test jobs without fail end.
type decideFunc = func(ctx context.Context, job flowtest.Job) (map[string]string, error)

func newHouse(t *testing.T, decide decideFunc) *house {
	t.Helper()
	h := &house{t: t, pool: schematest.Pool(t)}
	h.jobs, h.flows = h.client(decide)
	return h
}

// client starts an executor and a scheduler.
func (h *house) client(decide decideFunc) (*jobs.Client, *flow.Client) {
	h.t.Helper()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &flowtest.Worker{Decide: decide})
	if err := flow.AddWorkers(workers, h.pool, flow.WorkerConfig{FilesDir: h.t.TempDir(), Secrets: h.keys}); err != nil {
		h.t.Fatal(err)
	}
	queue, err := jobs.NewClient(h.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 20}}, Workers: workers,
		Heartbeat: 50 * time.Millisecond, PollInterval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := queue.Start(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	flows, err := flow.NewClient(h.pool, queue, &flow.Config{Logger: slog.New(slog.NewTextHandler(testLog{h.t}, nil)), Kinds: []string{flowtest.Kind}})
	if err != nil {
		h.t.Fatal(err)
	}
	flows.Start(h.t.Context())
	h.t.Cleanup(func() {
		flows.Stop()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := queue.StopAndCancel(ctx); err != nil {
			h.t.Errorf("stop: %v", err)
		}
	})
	return queue, flows
}

type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// cases is the folder of Azkaban's own examples.
func cases(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("PELTON_AZKABAN_DIR")
	if dir == "" {
		t.Skip("PELTON_AZKABAN_DIR is not set: the examples to run are not there")
	}
	return filepath.Join(dir, name)
}

// write makes a project of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// yaml makes a Flow 2.0 project of one flow named f.
func yaml(t *testing.T, text string) string {
	t.Helper()
	return write(t, map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "f.flow": text})
}

func (h *house) push(dir string) {
	h.t.Helper()
	if _, err := h.flows.Push(h.t.Context(), "p", dir); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) start(name string, o flow.Options) int64 {
	h.t.Helper()
	run, err := h.flows.Run(h.t.Context(), flow.RunParams{Project: "p", Flow: name, Options: o})
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

// ended waits for a run's end and returns it as text: the run's status, then node=status by name.
func (h *house) ended(run int64) string {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	r, err := h.flows.Ended(ctx, run, nil)
	if err != nil {
		r, _ = h.flows.Get(h.t.Context(), run)
		h.t.Fatalf("run %d did not end: %v\n%s", run, err, describe(r))
	}
	return describe(r)
}

func describe(r *flow.RunDetail) string {
	status := map[string]string{}
	for _, n := range r.Nodes {
		status[n.Path] = n.Status
	}
	text := r.Status + ":"
	for _, path := range slices.Sorted(maps.Keys(status)) {
		text += " " + path + "=" + status[path]
	}
	return text
}

// eventually waits for a node to have a status.
func (h *house) eventually(run int64, path, status string) {
	h.t.Helper()
	var got string
	pgtest.Eventually(h.t, patience, func() bool {
		r, err := h.flows.Get(h.t.Context(), run)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, n := range r.Nodes {
			if n.Path == path {
				got = n.Status
			}
		}
		return got == status
	}, "node %s of run %d to be %s", path, run, status)
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s\n got %s\nwant %s", what, got, want)
	}
}

func TestFlowOfTestJobs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "b" {
			return nil, errors.New("broken")
		}
		return map[string]string{"key": "of " + j.Node.Path + " " + j.Args["text"]}, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, config: {text: "${who}"}}
  - {name: n, type: noop, dependsOn: [a]}
  - {name: c, type: test, dependsOn: [n, a], config: {text: "after ${key}"}}
  - {name: b, type: test, dependsOn: [a]}
  - {name: d, type: test, dependsOn: [b, c]}
`))
	run := h.start("f", flow.Options{Params: map[string]string{"who": "me"}, OnFailure: flow.FinishPossible})
	equal(t, "run", h.ended(run), "FAILED: a=SUCCEEDED b=FAILED c=SUCCEEDED d=CANCELLED n=SUCCEEDED")
	r, err := h.flows.Get(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Nodes {
		switch n.Path {
		case "c":
			equal(t, "outputs of c", string(n.Outputs), `{"key":"of c after of a me"}`)
		case "b":
			if n.Reason == nil || *n.Reason != "broken" || n.StartedAt == nil || n.EndedAt == nil || n.QueuedAt.After(*n.EndedAt) {
				t.Errorf("b is %+v", n)
			}
		}
	}
}
