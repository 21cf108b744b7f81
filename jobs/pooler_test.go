package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
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
			later := insert(t, client, 5, inAnHour())
			if _, err := client.JobReschedule(t.Context(), later, time.Now(), nil); err != nil {
				t.Error(err)
			}
			waitOutcomes(t, pool, later, "completed")
		})
	}
}

// TestPgBouncer has a client with all duties do its work through a real PgBouncer: enqueue in all ways, work, fail and run again,
// complete in a transaction, cancel what runs, put back what the dead had, keep marks and partitions.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode  string
		query pgx.QueryExecMode
	}{
		"transaction, exec":            {"transaction", pgx.QueryExecModeExec},
		"transaction, cache describe":  {"transaction", pgx.QueryExecModeCacheDescribe},
		"transaction, simple protocol": {"transaction", pgx.QueryExecModeSimpleProtocol},
		"session":                      {"session", pgx.QueryExecModeCacheStatement},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := schematest.DSN(t)
			direct := pgtest.Pool(t, dsn)
			through := pgtest.Pool(t, pgtest.Pooler(t, dsn, c.mode), func(config *pgxpool.Config) {
				config.ConnConfig.DefaultQueryExecMode = c.query
			})
			pooled := &pooled{direct: direct, through: through, running: newBlocking()}
			config := config(pooled.work)
			config.RetryPolicy, config.PollOnly = atOnce{}, c.mode == "transaction"
			pooled.client = start(t, through, config)
			pooled.check(t)
			schematest.Audit(t, direct)
		})
	}
}

// What the jobs of TestPgBouncer do, by their number; others just complete.
const (
	failsOnce = iota + 1
	records
	completesInTx
	blocks
)

// pooled is a client behind a pooler.
type pooled struct {
	direct, through *pgxpool.Pool
	client          *jobs.Client
	running         *blocking
}

func (p *pooled) work(ctx context.Context, job *river.Job[taskArgs]) error {
	switch job.Args.N {
	case failsOnce:
		if job.Attempt == 1 {
			return errors.New("not yet")
		}
	case records:
		if _, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte("printed\x00")); err != nil {
			return err
		}
		return jobs.RecordOutput(ctx, "done")
	case completesInTx:
		return pgx.BeginFunc(ctx, p.through, func(tx pgx.Tx) error {
			_, err := jobs.CompleteTx(ctx, tx, job)
			return err
		})
	case blocks:
		return p.running.work(ctx, job)
	}
	return nil
}

func (p *pooled) check(t *testing.T) {
	t.Helper()
	ctx, client := t.Context(), p.client
	failed, recorded := insert(t, client, failsOnce, nil), insert(t, client, records, nil)
	inTx, blocked := insert(t, client, completesInTx, nil), insert(t, client, blocks, nil)
	soon := insert(t, client, 0, &river.InsertOpts{ScheduledAt: time.Now().Add(200 * time.Millisecond)})
	tx, kept := insertIn(t, p.through, client, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	commit(t, tx)
	tx, dropped := insertIn(t, p.through, client, nil)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	params := make([]river.InsertManyParams, 300)
	for i := range params {
		params[i].Args = taskArgs{N: 100 + i}
	}
	if n, err := client.InsertManyFast(ctx, params); err != nil || n != len(params) {
		t.Fatalf("inserted %d: %v", n, err)
	}
	fromSQL := one[int64](t, p.through, `SELECT pelton.enqueue('task', '{"n": 0}'::json)`)

	<-p.running.began
	if _, err := client.JobCancel(ctx, blocked); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int64]string{
		failed: "errored completed", recorded: "completed", inTx: "completed", blocked: "cancelled",
		soon: "completed", kept: "completed", dropped: "", fromSQL: "completed",
	} {
		waitOutcomes(t, p.direct, id, want)
	}
	job, err := client.JobGet(ctx, recorded)
	if err != nil || string(job.Output()) != `"done"` {
		t.Errorf("output is %s, %v", job.Output(), err)
	}
	var printed bytes.Buffer
	pgtest.Eventually(t, patience, func() bool {
		printed.Reset()
		err := joblog.Copy(&printed, joblog.Read(ctx, p.through, schema.DefaultName, recorded, 1, joblog.Options{}))
		return err == nil && printed.String() == "printed\x00"
	}, "the log")
	if list, err := client.JobList(ctx, jobs.NewJobListParams().Kinds("task").First(10)); err != nil || len(list.Jobs) != 10 {
		t.Errorf("listed %v, %v", list, err)
	}
	p.checkDuties(t)
}

// checkDuties wants a dead process's job to be put back, and marks and partitions to be kept.
func (p *pooled) checkDuties(t *testing.T) {
	t.Helper()
	lost := insert(t, p.client, 0, &river.InsertOpts{Pending: true})
	exec(t, p.direct, `WITH gone AS (DELETE FROM pelton.job_parked RETURNING job_id)
		INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT -1, 1, ARRAY[job_id] FROM gone`)
	waitOutcomes(t, p.direct, lost, "lost completed")
	for what, sql := range map[string]string{
		"all jobs to be worked":        `SELECT count(*) = 0 FROM pelton.job_state WHERE state NOT IN ('completed', 'cancelled')`,
		"a mark to be published":       `SELECT count(*) > 0 FROM pelton.floor WHERE relation = 'job_ready'`,
		"used-up leases to be deleted": `SELECT count(*) = 0 FROM pelton.job_lease`,
	} {
		pgtest.Eventually(t, patience, func() bool { return one[bool](t, p.direct, sql) }, "%s", what)
	}
	keeper, err := schema.NewKeeper(p.through, schema.DefaultName, schema.KeeperConfig{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Retry(t, patience, func(ctx context.Context) error { // the client's own pass may have made way for its work
		report, err := keeper.Maintain(ctx)
		if err == nil && (report.Busy || len(report.Postponed) > 0) {
			err = fmt.Errorf("not yet: %+v", report)
		}
		return err
	})
	if n := one[int](t, p.direct, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'pelton.job'::regclass`); n < 3 {
		t.Errorf("there are %d partitions", n)
	}
}
