package jobs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestQueryModesOfPoolers enqueues and works in the ways of asking that poolers in transaction mode call for, without LISTEN.
func TestQueryModesOfPoolers(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			pool := schematest.Audited(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
				if job.Args.N == 1 && job.Attempt == 1 {
					return errors.New("not yet")
				}
				if job.Args.N == 2 {
					return jobs.RecordOutput(ctx, "done")
				}
				return nil
			})
			c.RetryPolicy, c.PollOnly = atOnce{}, true
			client := start(t, pool, c)
			ids := []int64{
				insert(t, client, 1, &river.InsertOpts{Tags: []string{"tag"}, Metadata: []byte(`{"a": 1}`)}),
				insert(t, client, 2, &river.InsertOpts{Priority: 2, UniqueOpts: river.UniqueOpts{ByArgs: true}}),
			}
			params := make([]river.InsertManyParams, 200)
			for i := range params {
				params[i].Args = taskArgs{N: 3}
			}
			if n, err := client.InsertManyFast(t.Context(), params); err != nil || n != len(params) {
				t.Fatalf("inserted %d: %v", n, err)
			}
			waitOutcomes(t, pool, ids[0], "errored completed")
			waitOutcomes(t, pool, ids[1], "completed")
			waitOutcomes(t, pool, one[int64](t, pool, `SELECT max(id) FROM pelton.job`), "completed")
			job, err := client.JobGet(t.Context(), ids[1])
			if err != nil || string(job.Output()) != `"done"` {
				t.Errorf("output is %s, %v", job.Output(), err)
			}
			if _, err := client.JobList(t.Context(), jobs.NewJobListParams().Kinds("task").First(10)); err != nil {
				t.Error(err)
			}
			if _, err := client.JobRetry(t.Context(), ids[1]); err != nil {
				t.Error(err)
			}
			waitOutcomes(t, pool, ids[1], "completed retried completed")
		})
	}
}
