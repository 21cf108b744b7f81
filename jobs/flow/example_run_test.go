package flow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/schema/schematest"
)

type CountArgs struct {
	Table string `json:"table"`
}

func (CountArgs) Kind() string { return "count" }

type CheckArgs struct {
	Rows string `json:"rows"`
}

func (CheckArgs) Kind() string { return "check" }

// A flow whose nodes are the program's own jobs: pushed, started in a transaction, worked, and waited for.
func Example() {
	ctx := context.Background()
	s := &stage{}
	defer s.end()
	pool := schematest.Pool(s)

	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[CountArgs]) error {
		node, _ := flow.NodeOf(job.JobRow)
		fmt.Println(node.Path, "counts", job.Args.Table)
		return jobs.RecordOutput(ctx, map[string]any{"rows": 42}) // the node's outputs
	}))
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[CheckArgs]) error {
		fmt.Println("check", job.Args.Rows)
		return nil
	}))
	check(flow.AddWorkers(workers, pool, flow.WorkerConfig{})) // for commands and notices
	queue, err := jobs.NewClient(pool, &jobs.Config{Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 10}}, Workers: workers})
	check(err)
	flows, err := flow.NewClient(pool, queue, nil)
	check(err)
	check(queue.Start(ctx))
	flows.Start(ctx) // advances runs
	defer func() {
		flows.Stop()
		check(queue.Stop(ctx))
	}()

	nightly, err := flow.New("nightly").
		Param("table", "orders").
		Job("count", CountArgs{Table: "${table}"}).Timeout(time.Minute).Retry(flow.Retry{Max: 3, Backoff: time.Second}).
		Job("check", CheckArgs{Rows: "${rows}"}).After("count").When("all_success && ${count:rows} > 0").
		Build()
	check(err)
	_, err = flows.PushFlows(ctx, "sales", nightly)
	check(err)

	var run int64
	check(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		run, err = flows.RunTx(ctx, tx, flow.RunParams{
			Project: "sales", Flow: "nightly", Options: flow.Options{Params: map[string]string{"table": "customers"}},
		})
		return err
	}))
	flows.Hint(ctx)
	ended, err := flows.Ended(ctx, run, nil)
	check(err)
	fmt.Println(ended.Status)

	// Output:
	// count counts customers
	// check 42
	// SUCCEEDED
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// stage stands in for the testing.TB that an Example does not have.
type stage struct {
	testing.TB
	cleanups []func()
}

func (*stage) Helper()                           {}
func (*stage) Context() context.Context          { return context.Background() }
func (*stage) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*stage) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*stage) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (s *stage) Cleanup(f func())                { s.cleanups = append(s.cleanups, f) }

func (s *stage) end() {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}
