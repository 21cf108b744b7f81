package loadtest

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/schema"
)

// pastDays is over how many days the ended jobs are spread.
const pastDays = 7

// filledPages is what of a filled database is looked at by name.
type filledPages struct {
	job    int64 // an ended one
	failed int64
	logged int64 // has printed much
	run    int64 // of the large flow; its first node printed much
}

// paths are looked at beside what links lead to: filters that people type.
func (f *filledPages) paths() []string {
	id := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{
		"/", "/jobs", "/jobs?state=discarded", "/jobs?state=completed", "/jobs?state=available", "/jobs?kind=kind-7", "/jobs?kind=nowhere",
		"/jobs?queue=queue-3", "/jobs?tag=tag-11", "/jobs?tag=nowhere", "/jobs?queue=queue-3&state=completed&kind=kind-3",
		"/jobs?args=customer-4711", "/jobs?args=nowhere", "/jobs/" + id(f.job), "/jobs/" + id(f.failed), "/jobs/" + id(f.logged),
		"/jobs/" + id(f.logged) + "/log?q=nowhere", "/runs/" + id(f.run), "/runs/" + id(f.run) + "/logs?q=nowhere", "/dead", "/audit", "/api/v1/jobs", "/api/v1/jobs?state=discarded", "/api/v1/queues",
	}
}

// fillStatements make one day of jobs that have ended: of $1 rows, at $2, from the first second of the day, so many days ago. Some of the
// jobs failed once, and one in a thousand for good.
var fillStatements = []string{
	`INSERT INTO pelton.job (id, created_at, kind, queue, priority, args, tags)
		SELECT (s.second << 24) | n, to_timestamp(s.second + 1704067200), 'kind-' || n % 50, 'queue-' || n % 10, 1 + n % 4,
			json_build_object('customer', 'customer-' || n % 100000, 'amount', n % 977),
			CASE WHEN n % 5 = 0 THEN ARRAY['tag-' || n % 100] END
		FROM generate_series(1, $1::bigint) n,
			LATERAL (SELECT extract(epoch FROM $2::timestamptz)::bigint - 1704067200 + n * 86399 / $1 AS second) s`,
	`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, started_at, ended_at, executor, error, trace)
		SELECT j.id, r.run, r.run, CASE WHEN r.run < r.last THEN 'errored' WHEN n % 1000 = 0 THEN 'discarded' ELSE 'completed' END::pelton.outcome,
			j.created_at + r.run * interval '1 second', j.created_at + r.run * interval '1.1 second', 1 + n % 10,
			CASE WHEN r.run < r.last OR n % 1000 = 0 THEN 'connection to 10.0.0.' || n % 250 || ' was refused' END,
			CASE WHEN r.run < r.last OR n % 1000 = 0 THEN repeat('goroutine 1 [running]: main.work(0x1)' || E'\n', 20) END
		FROM pelton.job j, LATERAL (SELECT j.id & 16777215 AS n) i, LATERAL (SELECT CASE WHEN n % 50 = 0 THEN 2 ELSE 1 END AS last) l,
			LATERAL (SELECT g AS run, l.last FROM generate_series(1, l.last) g) r
		WHERE j.id BETWEEN pelton.id_at($2::timestamptz) AND pelton.id_at($2::timestamptz + interval '1 day') - 1 AND $1::bigint > 0`,
	`INSERT INTO pelton.job_dead (job_id, died_at, created_at, priority, max_attempts, attempt, reason, kind, queue, error, args, attempts)
		SELECT j.id, j.created_at + interval '2 seconds', j.created_at, j.priority, 25, 1, 'exhausted', j.kind, j.queue, 'connection was refused', j.args,
			json_build_array(json_build_object('run', 1, 'attempt', 1, 'outcome', 'discarded', 'error', 'connection was refused'))
		FROM pelton.job j
		WHERE j.id BETWEEN pelton.id_at($2::timestamptz) AND pelton.id_at($2::timestamptz + interval '1 day') - 1
			AND (j.id & 16777215) % 1000 = 0 AND $1::bigint > 0`,
}

// fillOnce are what else such a database holds.
var fillOnce = []string{
	`INSERT INTO pelton.executor (started_at, beat_at, beat, stopped_at, pid, slots, running, name, host, queues, kinds)
		SELECT now() - n * interval '20 minutes', now() - n * interval '19 minutes', 1000, now() - n * interval '19 minutes', n, 100, n % 100, 'executor-' || n, 'host-' || n % 7,
			ARRAY['queue-' || n % 10], '{}' FROM generate_series(1, 500) n`,
	`INSERT INTO pelton.audit (at, actor, action, target, before, after)
		SELECT now() - n * interval '5 seconds', 'user-' || n % 20, 'job.retry', n::text, '{"state": "discarded"}', '{"state": "available"}'
		FROM generate_series(1, 100000) n`,
	`WITH stored AS (
			INSERT INTO pelton.schedule (name, spec)
			SELECT 'schedule-' || n, json_build_object('name', 'schedule-' || n, 'cron', '0 3 * * *', 'job', json_build_object('kind', 'noop'))
			FROM generate_series(1, 1000) n RETURNING id)
		INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake) SELECT id, now(), u.at, u.at FROM stored,
			LATERAL (SELECT date_trunc('day', now()) + interval '27 hours' AS at) u`,
	`INSERT INTO pelton.schedule_tick (schedule_id, tick, at, decided_at, source, outcome, job_id)
		SELECT s.id, pelton.tick_key(t.at), t.at, t.at, 'clock', 'fired', pelton.id_at(t.at) FROM pelton.schedule s, generate_series(1, 100) n,
			LATERAL (SELECT date_trunc('day', now()) - n * interval '1 hour' AS at) t`,
}

// fillLog gives job $1 a log of $2 bytes in chunks of 32 KiB, of lines of 64 bytes.
const fillLog = `INSERT INTO pelton.job_log (job_id, at, pos, run, stream, data)
	SELECT $1, now(), n * 32768::bigint, 1, 'o', convert_to((SELECT string_agg(lpad((n * 512 + l)::text, 10, '0') || ' ' || repeat('x', 52) || E'\n', '' ORDER BY l)
		FROM generate_series(0, 511) l), 'UTF8')
	FROM generate_series(0, greatest($2::bigint / 32768 - 1, 0)) n`

// fillReady lines up $1 jobs as one bulk insert would.
const fillReady = `SELECT count(*) FROM pelton.insert_jobs(array_fill('kind-1'::text, ARRAY[$1::int]), array_fill('{"customer": "customer-1"}'::text, ARRAY[$1::int]),
	(SELECT array_agg('queue-' || n % 10) FROM generate_series(1, $1::int) n), array_fill(1::smallint, ARRAY[$1::int]),
	array_fill(25::smallint, ARRAY[$1::int]), NULL, NULL, NULL, NULL, NULL, NULL, NULL, false)`

// fillPages makes a database as it is after a week of work.
func fillPages(ctx context.Context, pool *pgxpool.Pool, dsn string, config PagesConfig, out io.Writer) (*filledPages, error) {
	begun := time.Now()
	if err := schema.Up(ctx, dsn, schema.DefaultName); err != nil {
		return nil, err
	}
	today := begun.UTC().Truncate(24 * time.Hour)
	if err := pastPartitions(ctx, pool, today); err != nil {
		return nil, fmt.Errorf("make partitions of the past: %w", err)
	}
	exec := func(sql string, args ...any) error {
		_, err := pool.Exec(ctx, sql, args...)
		return err
	}
	for day := 1; day <= pastDays; day++ {
		for _, sql := range fillStatements {
			if err := exec(sql, config.Finished/pastDays, today.AddDate(0, 0, -day)); err != nil {
				return nil, fmt.Errorf("jobs of %d days ago: %w", day, err)
			}
		}
		fmt.Fprintf(out, "%d jobs stored after %.0f s\n", config.Finished/pastDays*day, time.Since(begun).Seconds())
	}
	const batch = 5000
	for left := config.Ready; left > 0; left -= batch {
		if err := exec(fillReady, min(left, batch)); err != nil {
			return nil, fmt.Errorf("ready jobs: %w", err)
		}
	}
	for _, sql := range fillOnce {
		if err := exec(sql); err != nil {
			return nil, err
		}
	}
	f := &filledPages{}
	const some = `SELECT (SELECT min(job_id) FROM pelton.job_attempt WHERE job_id >= pelton.id_at($1)), (SELECT max(job_id) FROM pelton.job_dead),
		(SELECT max(job_id) FROM pelton.job_attempt)`
	if err := pool.QueryRow(ctx, some, today.AddDate(0, 0, -3)).Scan(&f.job, &f.failed, &f.logged); err != nil {
		return nil, err
	}
	if err := exec(fillLog, f.logged, config.LogBytes); err != nil {
		return nil, fmt.Errorf("a long log: %w", err)
	}
	var err error
	if f.run, err = fillFlow(ctx, pool, config); err != nil {
		return nil, fmt.Errorf("a large flow: %w", err)
	}
	if err := exec("UPDATE pelton.flow_node SET job_id = $1 WHERE run_id = $2 AND no = 0", f.logged, f.run); err != nil {
		return nil, fmt.Errorf("a node with a long log: %w", err)
	}
	if err := exec("VACUUM (ANALYZE)"); err != nil {
		return nil, err
	}
	return f, exec("CHECKPOINT")
}

// pastPartitions makes a partition for each past day, as maintenance would have done, and those ahead.
func pastPartitions(ctx context.Context, pool *pgxpool.Pool, today time.Time) error {
	for _, table := range []string{"job", "job_attempt"} {
		rest := "pelton." + table + "_rest"
		statements := []string{fmt.Sprintf("ALTER TABLE pelton.%s DETACH PARTITION %s", table, rest)}
		from := "0"
		for day := pastDays; day >= 0; day-- {
			var to string
			if err := pool.QueryRow(ctx, "SELECT pelton.id_at($1)::text", today.AddDate(0, 0, 1-day)).Scan(&to); err != nil {
				return err
			}
			statements = append(statements, fmt.Sprintf("CREATE TABLE pelton.%[1]s_past_%[2]d PARTITION OF pelton.%[1]s FOR VALUES FROM (%[3]s) TO (%[4]s)", table, day, from, to))
			from = to
		}
		statements = append(statements, fmt.Sprintf("ALTER TABLE pelton.%s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (MAXVALUE)", table, rest, from))
		for _, sql := range statements {
			if _, err := pool.Exec(ctx, sql); err != nil {
				return err
			}
		}
	}
	keeper, err := schema.NewKeeper(pool, schema.DefaultName, schema.KeeperConfig{})
	if err != nil {
		return err
	}
	_, err = keeper.Maintain(ctx)
	return err
}

// fillFlow pushes a flow with many nodes, runs it, and tells the run. A tenth of the nodes have a second parent.
func fillFlow(ctx context.Context, pool *pgxpool.Pool, config PagesConfig) (run int64, err error) {
	queue, err := jobs.NewClient(pool, &jobs.Config{Logger: config.Logger})
	if err != nil {
		return 0, err
	}
	flows, err := flow.NewClient(pool, queue, &flow.Config{Logger: config.Logger})
	if err != nil {
		return 0, err
	}
	b := flow.New("large")
	for i := range config.Nodes {
		b.Noop("node-" + strconv.Itoa(i))
		switch {
		case i >= 20 && i%10 == 0:
			b.After("node-"+strconv.Itoa(i-20), "node-"+strconv.Itoa(i-13))
		case i >= 20:
			b.After("node-" + strconv.Itoa(i-20))
		}
	}
	built, err := b.Build()
	if err != nil {
		return 0, err
	}
	if _, err := flows.PushFlows(ctx, "large", built); err != nil {
		return 0, err
	}
	flows.Start(ctx)
	defer flows.Stop()
	if run, err = flows.Run(ctx, flow.RunParams{Project: "large", Flow: "large"}); err != nil {
		return 0, err
	}
	_, err = flows.Ended(ctx, run, nil)
	return run, err
}
