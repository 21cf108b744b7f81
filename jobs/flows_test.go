package jobs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/internal/mark"
	"github.com/peltonq/pelton/schema/schematest"
)

// The end of a flow's job is reported once, with the attempt that ends it; a retry is no end. Other jobs report nothing.
func TestEndsOfFlowsJobsAreReported(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	first := atomic.Bool{}
	client := newClient(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		switch job.Args.N {
		case 1:
			return jobs.RecordOutput(ctx, map[string]string{"key": "value"})
		case 2:
			return errors.New("broken")
		case 3:
			return river.JobCancel(errors.New("not wanted"))
		case 4:
			if first.CompareAndSwap(false, true) {
				return errors.New("once")
			}
		case 5:
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				_, err := jobs.CompleteTx(ctx, tx, job)
				return err
			})
		}
		return nil
	}))
	told := make(chan struct{}, 100)
	client.OnFlowReport(func() { told <- struct{}{} })
	for n := range 7 {
		opts := &river.InsertOpts{MaxAttempts: 1}
		if n == 4 {
			opts.MaxAttempts = 2
		}
		if n > 0 {
			metadata, err := mark.Mark{Run: 10, Node: int32(n), Retry: &mark.Retry{}}.Metadata(nil)
			if err != nil {
				t.Fatal(err)
			}
			opts.Metadata = metadata
		}
		insert(t, client, n, opts)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.StopAndCancel(context.Background()) })
	const want = "1 completed 1 value, 2 discarded 1 broken, 3 cancelled 1 JobCancelError: not wanted, 4 completed 2 , 5 completed 1 , 6 completed 1 "
	var got string
	pgtest.Eventually(t, patience, func() bool {
		err := pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', node, outcome, attempt, coalesce(output ->> 'key', error, '')), ', ' ORDER BY node)
			FROM pelton.flow_report WHERE run_id = 10`).Scan(&got)
		return err == nil && got == want
	}, "the reports")
	<-told
}
