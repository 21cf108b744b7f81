package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// house is a queue, and somebody who evaluates rules when the test says so.
type house struct {
	t     *testing.T
	pool  *pgxpool.Pool
	queue *jobs.Client // enqueues only
	store *alert.Store
	eval  *alert.Evaluator
	seen  int64 // the last notice that was read
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newHouse(t *testing.T, f *alert.File) *house {
	t.Helper()
	return newHouseOn(t, schematest.Pool(t), f)
}

func newHouseOn(t *testing.T, pool *pgxpool.Pool, f *alert.File) *house {
	t.Helper()
	h := &house{t: t, pool: pool}
	var err error
	h.queue, err = jobs.NewClient(pool, &jobs.Config{Logger: quiet()})
	must(t, err)
	h.store, err = alert.NewStore(pool, "")
	must(t, err)
	h.eval = h.evaluator(f, nil)
	return h
}

func (h *house) evaluator(f *alert.File, lost func() (int, bool)) *alert.Evaluator {
	h.t.Helper()
	e, err := alert.NewEvaluator(h.pool, h.queue, alert.Config{File: f, Lost: lost, Logger: quiet()})
	must(h.t, err)
	return e
}

// file has rules, a channel ops that does not exist anywhere, and no wait between evaluations.
func file(rules ...alert.Rule) *alert.File {
	f := &alert.File{Path: "alerts.yaml", Name: "here", Every: 1, Queue: alert.DefaultQueue, Rules: rules, Channels: []alert.Channel{{Name: "ops", Type: alert.Webhook}}}
	for i := range f.Rules {
		f.Rules[i].Group, f.Rules[i].RecoverAfter, f.Rules[i].For = 0, 0, 0
		f.Rules[i].Channels = []string{"ops"}
	}
	return f
}

// rule has the defaults of its type, and its name, but no waits.
func rule(typ string, change func(*alert.Rule)) alert.Rule {
	r := alert.NewRule(typ, typ)
	if change != nil {
		change(&r)
	}
	return r
}

// evaluate evaluates once, and returns the notices that were enqueued, as lines of event, channel and summary.
func (h *house) evaluate() string {
	h.t.Helper()
	did, err := h.eval.Evaluate(h.t.Context())
	if err != nil || !did {
		h.t.Fatalf("evaluate: %v, %v", did, err)
	}
	var fault string
	if err := h.pool.QueryRow(h.t.Context(), `SELECT fault FROM pelton.alert_rule WHERE fault IS NOT NULL`).Scan(&fault); !errors.Is(err, pgx.ErrNoRows) {
		h.t.Fatalf("a rule cannot be read: %s %v", fault, err)
	}
	return h.notices()
}

// notices are those that were enqueued since the last look.
func (h *house) notices() string {
	h.t.Helper()
	rows, err := h.pool.Query(h.t.Context(), `SELECT id, args FROM pelton.job WHERE kind = $1 AND id > $2 ORDER BY id`, alert.Kind, h.seen)
	must(h.t, err)
	var lines []string
	var args []byte
	_, err = pgx.ForEachRow(rows, []any{&h.seen, &args}, func() error {
		var n alert.Notice
		lines = append(lines, "")
		err := json.Unmarshal(args, &n)
		lines[len(lines)-1] = fmt.Sprintf("%s %s %s", n.Event, n.Channel, n.Summary)
		return err
	})
	must(h.t, err)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// expect evaluates until notices come, and wants one that begins so.
func (h *house) expect(want string) {
	h.t.Helper()
	var got string
	pgtest.Eventually(h.t, patience, func() bool { got = h.evaluate(); return got != "" }, "a notice %q", want)
	if !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
		h.t.Errorf("notices are\n%s\nwant %q", got, want)
	}
	if again := h.evaluate(); again != "" {
		h.t.Errorf("the next evaluation tells\n%s", again)
	}
}

func (h *house) exec(sql string, args ...any) {
	h.t.Helper()
	tag, err := h.pool.Exec(h.t.Context(), sql, args...)
	must(h.t, err)
	if tag.RowsAffected() == 0 {
		h.t.Fatalf("%s changes nothing", sql)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// taskArgs are of a job that fails if it is to.
type taskArgs struct {
	Fail bool `json:"fail"`
}

func (taskArgs) Kind() string { return "task" }

var errTask = errors.New("no money in the till")

func work(_ context.Context, job *river.Job[taskArgs]) error {
	if job.Args.Fail {
		return errTask
	}
	return nil
}

// works starts an executor of a queue on a pool.
func (h *house) works(pool *pgxpool.Pool, queue string, change func(*jobs.Config)) *jobs.Client {
	h.t.Helper()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(work))
	config := &jobs.Config{
		Queues: map[string]jobs.QueueConfig{queue: {MaxWorkers: 10}}, Workers: workers, Logger: quiet(), DutiesOff: true,
		Heartbeat: 50 * time.Millisecond, Lease: 30 * time.Second, PollInterval: 100 * time.Millisecond,
	}
	if change != nil {
		change(config)
	}
	client, err := jobs.NewClient(pool, config)
	must(h.t, err)
	must(h.t, client.Start(h.t.Context()))
	h.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = client.StopAndCancel(ctx) // one was cut off
	})
	return client
}

// insert enqueues so many tasks, and returns the first's id.
func (h *house) insert(n int, fail bool, opts river.InsertOpts) (id int64) {
	h.t.Helper()
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i] = river.InsertManyParams{Args: taskArgs{Fail: fail}, InsertOpts: &opts}
	}
	made, err := h.queue.InsertMany(h.t.Context(), params)
	must(h.t, err)
	return made[0].Job.ID
}

// ended waits until so many runs of tasks have ended.
func (h *house) ended(runs int) {
	h.t.Helper()
	pgtest.Eventually(h.t, patience, func() bool {
		var n int
		err := h.pool.QueryRow(h.t.Context(), `SELECT count(*) FROM pelton.job_attempt`).Scan(&n)
		return err == nil && n >= runs
	}, "%d ended runs", runs)
}
