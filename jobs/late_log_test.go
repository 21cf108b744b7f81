package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// logDays cuts job_log into partitions of a day, 60 of them in the past.
const logDays = `DO $$
DECLARE
	day bigint := 86400::bigint << 24;
	low text := 'MINVALUE';
	high bigint := pelton.id_at(now()) / day * day - 59 * day;
BEGIN
	ALTER TABLE pelton.job_log DETACH PARTITION pelton.job_log_rest;
	FOR i IN 0..60 LOOP
		EXECUTE format('CREATE TABLE pelton.job_log_p_day%s PARTITION OF pelton.job_log FOR VALUES FROM (%s) TO (%s)', i, low, high);
		low := high;
		high := high + day;
	END LOOP;
	EXECUTE format('ALTER TABLE pelton.job_log ATTACH PARTITION pelton.job_log_rest FOR VALUES FROM (%s) TO (MAXVALUE)', low);
END $$`

// A job starts 50 days after it was enqueued, when the logs of that day are long gone: it has a place to print to, what it prints is
// found, and is kept like everything printed today.
func TestLogOfAJobThatStartsLate(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	exec(t, pool, logDays)
	id := one[int64](t, pool, `WITH asked AS (
			INSERT INTO pelton.job (id, created_at, kind, args)
			SELECT pelton.id_at(at) | 77, at, 'task', '{"n": 1}' FROM (SELECT now() - interval '50 days' AS at) a RETURNING id
		), waits AS (INSERT INTO pelton.job_parked (job_id) SELECT id FROM asked)
		SELECT id FROM asked`)
	keeper, err := schema.NewKeeper(pool, schema.DefaultName, schema.KeeperConfig{Retention: schema.Retention{Logs: 72 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	maintain := func() schema.Report {
		report, err := keeper.Maintain(t.Context())
		if err != nil || report.Busy || len(report.Postponed) > 0 {
			t.Fatalf("maintenance: %+v, %v", report, err)
		}
		return report
	}
	if report := maintain(); len(report.Dropped) < 55 {
		t.Fatalf("%d partitions were dropped: the test shows nothing", len(report.Dropped))
	}
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		_, err := fmt.Fprintf(joblog.FromContext(ctx).Stream(joblog.Stdout), "late by %d days", int(time.Since(job.CreatedAt).Hours()/24))
		return err
	})
	c.DutiesOff = true // maintenance is the test's
	client := start(t, pool, c)
	if _, err := client.JobRetry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, pool, id, "completed")
	printed := func() string {
		var b strings.Builder
		if err := joblog.Copy(&b, joblog.Read(t.Context(), pool, schema.DefaultName, id, 1, joblog.Options{})); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	pgtest.Eventually(t, patience, func() bool { return printed() == "late by 50 days" }, "the log of the late job")
	sizes, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, id)
	if err != nil || len(sizes) != 1 {
		t.Errorf("sizes %+v: %v", sizes, err)
	}
	maintain()
	if got := printed(); got != "late by 50 days" {
		t.Errorf("after maintenance the log is %q", got)
	}
}
