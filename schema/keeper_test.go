package schema_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

func TestFirstPassMakesPartitionsAhead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	k := newKeeper(t, pool, schema.KeeperConfig{})
	report := maintain(t, k)
	if len(report.Created) != 4*31 || len(report.Closed) != 0 {
		t.Errorf("created %d, closed %v; want 31 for each table", len(report.Created), report.Closed)
	}
	id := enqueue(t, pool)
	if in := partitionOf(t, pool, id); !strings.HasPrefix(in, "job_p_") {
		t.Errorf("a new job went to %q", in)
	}
	for _, p := range list(t, k) {
		if p.State == schema.PartitionOpen && p.Parent == "job" && (id < p.From || id >= p.To) {
			t.Errorf("the open partition %q does not hold a new id", p.Name)
		}
	}
	ahead, err := k.Ahead(t.Context())
	if err != nil || len(ahead) != 4 {
		t.Fatal(ahead, err)
	}
	for _, a := range ahead {
		if a.Partitions != 30 || a.Until < 30*day || a.Until > 31*day {
			t.Errorf("%+v, want 30 partitions and 30 to 31 days", a)
		}
	}
	if report = maintain(t, k); len(report.Created)+len(report.Dropped)+len(report.Closed)+len(report.Postponed) != 0 {
		t.Errorf("a second pass did %+v", report)
	}
	contiguous(t, k)
}

func TestPartitionsAheadAreMadeBeforeTheyRunOut(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	maintain(t, newKeeper(t, pool, schema.KeeperConfig{Ahead: 4}))
	enqueue(t, pool)
	k := newKeeper(t, pool, schema.KeeperConfig{Ahead: 9, Low: 5})
	if report := maintain(t, k); len(report.Created) != 4*5 || len(report.Closed) != 0 {
		t.Fatalf("with 4 of 9 left: %+v", report)
	}
	contiguous(t, k)
}

// Maintenance that never came, or was away for longer than the partitions ahead lasted.
func TestOpenEndedPartitionWithRowsIsClosed(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	first := enqueue(t, pool)
	end(t, pool, first, "completed", 0)
	mustExec(t, pool, "INSERT INTO pelton.job_log (job_id, run, pos, stream, data) VALUES ($1, 1, 0, 'o', 'x')", first)
	k := newKeeper(t, pool, schema.KeeperConfig{Ahead: 3, PartitionSize: hour})
	var late int64
	schema.SetFailpoint(k, func(step string) error {
		if step == "validated job" {
			late = enqueue(t, pool) // while the end is set, but not yet in place
		}
		return nil
	})
	report := maintain(t, k)
	if len(report.Closed) != 3 || len(report.Postponed) != 0 {
		t.Fatalf("%+v, want a closed one for each table", report)
	}
	for _, id := range []int64{first, late, enqueue(t, pool)} {
		if in := partitionOf(t, pool, id); in == "job_rest" {
			t.Errorf("job %d is in %q", id, in)
		}
	}
	contiguous(t, k)
	if checks := count(t, pool, "pg_constraint WHERE conname = 'pelton_close'"); checks != 0 {
		t.Errorf("%d constraints are left", checks)
	}
}

// newKeeper makes a keeper that gives up soon.
func newKeeper(t *testing.T, pool *pgxpool.Pool, config schema.KeeperConfig) *schema.Keeper {
	t.Helper()
	k, err := schema.NewKeeper(pool, "pelton", config)
	if err != nil {
		t.Fatal(err)
	}
	schema.SetPatience(k, 50*time.Millisecond, 5)
	return k
}

func maintain(t *testing.T, k *schema.Keeper) schema.Report {
	t.Helper()
	report, err := k.Maintain(t.Context())
	if err != nil || report.Busy {
		t.Fatalf("%+v: %v", report, err)
	}
	return report
}

func list(t *testing.T, k *schema.Keeper) []schema.Partition {
	t.Helper()
	all, err := k.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// contiguous checks that partitions leave no id without a place, and that those of job and job_attempt are in step.
func contiguous(t *testing.T, k *schema.Keeper) {
	t.Helper()
	ends := map[string][]int64{}
	for _, p := range list(t, k) {
		if have := ends[p.Parent]; len(have) > 0 && have[len(have)-1] != p.From {
			t.Errorf("a gap or overlap before partition %q", p.Name)
		}
		ends[p.Parent] = append(ends[p.Parent], p.To)
		if open := p.State == schema.PartitionRest; open != (p.To == math.MaxInt64) {
			t.Errorf("partition %q is %q and ends at %d", p.Name, p.State, p.To)
		}
	}
	if !slices.Equal(ends["job"], ends["job_attempt"]) {
		t.Errorf("job and job_attempt are not in step: %v and %v", ends["job"], ends["job_attempt"])
	}
}

// past gives the empty schema one partition of an hour for each of the last n hours and the present one, as passes long ago would have.
func past(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	var now int64
	if err := pool.QueryRow(t.Context(), "SELECT (pelton.id_at(clock_timestamp()) >> 24) / 3600 * 3600").Scan(&now); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"job", "job_attempt", "job_log", "schedule_tick"} {
		sql := fmt.Sprintf("ALTER TABLE pelton.%s DETACH PARTITION pelton.%[1]s_rest;", table)
		from := fmt.Sprintf("'%d'", (now-int64(n)*3600)<<24)
		if table == "job_log" {
			from = "MINVALUE"
		} else {
			sql += fmt.Sprintf("ALTER TABLE pelton.%s DETACH PARTITION pelton.%[1]s_old; ALTER TABLE pelton.%[1]s ATTACH PARTITION"+
				" pelton.%[1]s_old FOR VALUES FROM (MINVALUE) TO (%s);", table, from)
		}
		for i := n; i >= 0; i-- {
			to := fmt.Sprintf("'%d'", (now-int64(i-1)*3600)<<24)
			sql += fmt.Sprintf("CREATE TABLE pelton.%[1]s_p_ago%[2]d PARTITION OF pelton.%[1]s FOR VALUES FROM (%[3]s) TO (%[4]s);",
				table, i, from, to)
			from = to
		}
		mustExec(t, pool, sql+fmt.Sprintf("ALTER TABLE pelton.%s ATTACH PARTITION pelton.%[1]s_rest FOR VALUES FROM (%s) TO (MAXVALUE)",
			table, from))
	}
}

// enqueue makes a job in the line.
func enqueue(t *testing.T, pool *pgxpool.Pool) (id int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT id FROM pelton.insert_jobs(ARRAY['k'], ARRAY['{}'], ARRAY['default'], ARRAY[1::smallint],
		ARRAY[25::smallint], NULL, NULL, NULL, NULL, NULL, NULL, false)`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// enqueued makes a job that was enqueued so long ago, in no place.
func enqueued(t *testing.T, pool *pgxpool.Pool, ago time.Duration) (id int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `INSERT INTO pelton.job (id, created_at, kind, args)
		SELECT pelton.id_at(at) | (nextval('pelton.job_id_seq') & 16777215), at, 'k', '{}'
		FROM (SELECT clock_timestamp() - $1::interval AS at) a RETURNING id`, ago).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// end records the end of a job's next run, so long ago.
func end(t *testing.T, pool *pgxpool.Pool, id int64, outcome string, ago time.Duration) {
	t.Helper()
	mustExec(t, pool, `INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt, ended_at)
		SELECT $1, (SELECT coalesce(max(run), 0) + 1 FROM pelton.job_attempt WHERE job_id = $1), $2::text::pelton.outcome, 1,
		clock_timestamp() - $3::interval`, id, outcome, ago)
}

// partitionOf is the partition that holds a job, "" if there is no such job.
func partitionOf(t *testing.T, pool *pgxpool.Pool, id int64) (name string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT coalesce((SELECT c.relname FROM pelton.job j JOIN pg_class c ON c.oid = j.tableoid
		WHERE j.id = $1), '')`, id).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

func count(t *testing.T, pool *pgxpool.Pool, from string, args ...any) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+from, args...).Scan(&n); err != nil {
		t.Fatalf("count %s: %v", from, err)
	}
	return n
}
