package joblog

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// splitDays cuts job_log into 400 partitions of a day, 370 of them in the past.
const splitDays = `DO $$
DECLARE
	day bigint := 86400::bigint << 24;
	first bigint := (pelton.id_at(now()) / (86400::bigint << 24) - 370) * (86400::bigint << 24);
BEGIN
	ALTER TABLE pelton.job_log DETACH PARTITION pelton.job_log_rest;
	EXECUTE format('CREATE TABLE pelton.job_log_past PARTITION OF pelton.job_log FOR VALUES FROM (MINVALUE) TO (%s)', first);
	FOR i IN 0..399 LOOP
		EXECUTE format('CREATE TABLE pelton.job_log_day%s PARTITION OF pelton.job_log FOR VALUES FROM (%s) TO (%s)',
			i, first + i * day, first + (i + 1) * day);
	END LOOP;
	EXECUTE format('ALTER TABLE pelton.job_log ATTACH PARTITION pelton.job_log_rest FOR VALUES FROM (%s) TO (MAXVALUE)',
		first + 400 * day);
END $$`

var scanned = regexp.MustCompile(`(?:Scan|on).* (job_log_\w+)`)

// partitions returns those that the plan of a statement has, read or not, and the plan: planning takes as long for what is not read.
func partitions(t *testing.T, pool *pgxpool.Pool, name string, args ...any) ([]string, string) {
	t.Helper()
	sql := "EXPLAIN (ANALYZE, COSTS off, TIMING off) " + statements(schema.DefaultName).Get(name)
	rows, err := pool.Query(t.Context(), sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range lines {
		if m := scanned.FindStringSubmatch(line); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), strings.Join(lines, "\n")
}

// TestReadsPrunePartitions looks at the plans for a job of two days ago: they read the days since then, by the primary key,
// without a sort.
func TestReadsPrunePartitions(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	if _, err := pool.Exec(t.Context(), splitDays); err != nil {
		t.Fatal(err)
	}
	w := NewWriter(pool, schema.DefaultName, Config{FlushInterval: time.Millisecond, ChunkBytes: 10})
	w.Start(t.Context())
	t.Cleanup(w.Stop)
	jobID := idAt(time.Now().Add(-48*time.Hour)) | 77
	run := w.Run(jobID, 1)
	if _, err := run.Stream(Stdout).Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run.Close(ctx); err != nil {
		t.Fatal(err)
	}

	after, all := secondOf(jobID)-1, []string{"o", "e", "l", "p"}
	end := idAt(time.Now()) | 1<<idBits - 1
	below, err := Ceiling(t.Context(), pool, schema.DefaultName)
	if err != nil || below < idAt(time.Now().Add(time.Hour)) || below > idAt(time.Now().Add(3*time.Hour)) {
		t.Fatalf("the ceiling is %d, %v", below, err)
	}
	for name, args := range map[string][]any{
		"read":      {jobID, int32(1), end, all, pageRows, below},
		"read_back": {jobID, int32(1), after, below, all, true, pageRows},
		"runs":      {[]int64{jobID}, []int64{after}, int64(7), int64(100), after, below},
		"trim":      {jobID, int32(1), after + 1, after + 1000},
	} {
		names, plan := partitions(t, pool, name, args...)
		if len(names) == 0 || len(names) > 4 || strings.Contains(plan, "Seq Scan on job_log_day") {
			t.Errorf("%s reads %d partitions:\n%s", name, len(names), plan)
		}
		if name != "runs" && strings.Contains(plan, "Sort") {
			t.Errorf("%s sorts:\n%s", name, plan)
		}
	}
}
