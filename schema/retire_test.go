package schema_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// short keeps jobs for four hours and a half, in partitions of an hour.
var short = schema.KeeperConfig{PartitionSize: hour, Ahead: 3, Retention: schema.Retention{Jobs: 4*hour + hour/2, Logs: 2 * hour, Ticks: 2 * hour}}

// aged is a database with jobs in partitions of the last ten hours.
type aged struct {
	pool *pgxpool.Pool
	ids  map[string]int64 // by what became of them, which is their kind
}

// newAged makes such a database, with a job for each way through life, enqueued nine hours ago unless said otherwise.
func newAged(t *testing.T, options ...func(*pgxpool.Config)) aged {
	t.Helper()
	a := aged{ids: map[string]int64{}}
	a.pool = pgtest.Pool(t, pgtest.FromTemplate(t, "aged", func(ctx context.Context, dsn string) error {
		if err := schema.Up(ctx, dsn, "pelton"); err != nil {
			return err
		}
		pool, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return err
		}
		defer pool.Close()
		fillAged(t, pool)
		return nil
	}), options...)
	rows, err := a.pool.Query(t.Context(), "SELECT kind, id FROM pelton.job")
	if err != nil {
		t.Fatal(err)
	}
	var kind string
	var id int64
	if _, err := pgx.ForEachRow(rows, []any{&kind, &id}, func() error { a.ids[kind] = id; return nil }); err != nil {
		t.Fatal(err)
	}
	return a
}

func fillAged(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	past(t, pool, 10)
	job := func(kind string, ago time.Duration) int64 {
		id := enqueued(t, pool, ago)
		mustExec(t, pool, "UPDATE pelton.job SET kind = $2 WHERE id = $1", id, kind)
		return id
	}
	end(t, pool, job("ended long ago", 9*hour), "completed", 8*hour)
	end(t, pool, job("cancelled long ago", 9*hour), "cancelled", 8*hour)
	end(t, pool, job("ended lately", 9*hour), "completed", hour)
	twice := job("failed, then ended lately", 9*hour)
	end(t, pool, twice, "errored", 8*hour)
	end(t, pool, twice, "discarded", hour)
	retried := job("retried lately", 9*hour)
	end(t, pool, retried, "completed", 8*hour)
	end(t, pool, retried, "retried", hour)
	ready(t, pool, retried, 3)
	ready(t, pool, job("in the line", 9*hour), 1)
	waits := job("retryable", 9*hour)
	end(t, pool, waits, "errored", 8*hour)
	mustExec(t, pool, "INSERT INTO pelton.job_scheduled (job_id, wake, due, run, retry) VALUES ($1, now(), now(), 2, true)", waits)
	mustExec(t, pool, "INSERT INTO pelton.job_parked (job_id) VALUES ($1)", job("pending", 9*hour))
	running := job("running", 9*hour)
	mustExec(t, pool, "INSERT INTO pelton.job_lease (executor, no, job_ids) VALUES (1, 1, ARRAY[$1::bigint])", running)
	job("lost", 9*hour) // in no place: a fault, which must not be swept under the carpet
	end(t, pool, job("young", 3*hour), "completed", 2*hour)
	mustExec(t, pool, "INSERT INTO pelton.job_log (id, job_id, run, pos, stream, data)"+
		" SELECT pelton.id_at(now() - h * interval '1 h'), $1, 1, h, 'o', 'x' FROM generate_series(0, 9) h", running)
	for h := range 10 {
		tick(t, pool, h+1, time.Duration(h)*hour, time.Duration(h)*hour)
	}
	tick(t, pool, 0, 20*hour, hour)     // of a backfill that was made lately
	tick(t, pool, 99, 20*hour, 15*hour) // and of one made long ago
}

// tick adds the tick of a schedule that was to be some time ago, and was decided some time ago.
func tick(t *testing.T, pool *pgxpool.Pool, schedule int, ago, decided time.Duration) {
	t.Helper()
	mustExec(t, pool, "INSERT INTO pelton.schedule_tick (schedule_id, tick, at, decided_at, source, outcome)"+
		" VALUES ($1, pelton.tick_key(now() - $2::interval), now() - $2::interval, now() - $3::interval, 'clock', 'fired')", schedule, ago, decided)
}

func ready(t *testing.T, pool *pgxpool.Pool, id int64, run int) {
	t.Helper()
	mustExec(t, pool, "INSERT INTO pelton.job_ready (priority, line, job_ids, runs) VALUES (1, 'default', ARRAY[$1::bigint], ARRAY[$2::integer])", id, run)
}

// check requires that exactly the jobs that have to live on are there, each with all of its attempts.
func (a aged) check(t *testing.T) {
	t.Helper()
	attempts := map[string]int{
		"ended lately": 1, "failed, then ended lately": 2, "retried lately": 2, "retryable": 1, "young": 1,
		"in the line": 0, "pending": 0, "running": 0, "lost": 0,
	}
	for name, id := range a.ids {
		want, lives := attempts[name]
		if in := partitionOf(t, a.pool, id); (in != "") != lives {
			t.Errorf("the job %q is in partition %q", name, in)
		}
		if got := count(t, a.pool, "pelton.job_attempt WHERE job_id = $1", id); got != want {
			t.Errorf("the job %q has %d attempts, want %d", name, got, want)
		}
	}
	if got := count(t, a.pool, "pelton.job_log"); got < 3 || got > 4 {
		t.Errorf("%d log chunks are left of one an hour, kept for two hours and the rest of their partition", got)
	}
	if got := count(t, a.pool, "pelton.schedule_tick WHERE schedule_id > 0"); got < 3 || got > 4 {
		t.Errorf("%d ticks are left of one an hour, kept for two hours and the rest of their partition", got)
	}
	if got := count(t, a.pool, "pelton.schedule_tick WHERE schedule_id = 0"); got != 1 {
		t.Errorf("%d ticks of a time before the partitions are left, want the one of a late backfill", got)
	}
	tick(t, a.pool, 200, 7*hour, 0) // a backfill may still write of a time whose partition is gone
	mustExec(t, a.pool, "DELETE FROM pelton.schedule_tick WHERE schedule_id = 200")
}

func TestRetentionKeepsWhatHasNotEndedLongAgo(t *testing.T) {
	t.Parallel()
	a := newAged(t)
	k := newKeeper(t, a.pool, short)
	report := maintain(t, k)
	a.check(t)
	contiguous(t, k)
	if len(report.Dropped) < 10 || report.Survivors != 8 || len(report.Postponed)+len(report.Kept) != 0 {
		t.Errorf("%+v", report)
	}
	if in := partitionOf(t, a.pool, a.ids["ended lately"]); in != "job_old" {
		t.Errorf("a survivor is in %q", in)
	}
	if n := count(t, a.pool, "pg_class WHERE relkind = 'r' AND relname ~ '_(next|gone)_'"); n != 0 {
		t.Errorf("%d tables are left behind", n)
	}
	if again := maintain(t, k); len(again.Dropped)+again.Survivors+again.Deleted["job"] != 0 {
		t.Errorf("a second pass did %+v", again)
	}
	a.check(t)
}

// A job scheduled far ahead outlives many partitions, and its result is kept for the retention after its end.
func TestResultOfAJobScheduledFarAhead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	past(t, pool, 60)
	id := enqueued(t, pool, 60*hour)
	mustExec(t, pool, "INSERT INTO pelton.job_scheduled (job_id, wake, due) VALUES ($1, now(), now())", id)
	maintain(t, newKeeper(t, pool, short))
	mustExec(t, pool, "DELETE FROM pelton.job_scheduled")
	end(t, pool, id, "completed", hour)
	report := maintain(t, newKeeper(t, pool, short))
	if in := partitionOf(t, pool, id); in != "job_old" || report.Deleted["job"] != 0 {
		t.Fatalf("the job that ended an hour ago is in %q: %+v", in, report)
	}
	if n := count(t, pool, "pelton.job_attempt_old WHERE job_id = $1", id); n != 1 {
		t.Fatalf("%d results", n)
	}
	mustExec(t, pool, "UPDATE pelton.job_attempt SET ended_at = ended_at - interval '1 day'")
	if report = maintain(t, newKeeper(t, pool, short)); report.Deleted["job"] != 1 {
		t.Fatalf("past its retention: %+v", report)
	}
	if partitionOf(t, pool, id) != "" || count(t, pool, "pelton.job_attempt") != 0 {
		t.Fatal("the job is still there")
	}
}

// A pass that is killed at any step loses nothing, hinders no enqueue, and the next one completes its work.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	var steps []string
	once := newKeeper(t, newAged(t).pool, short)
	schema.SetFailpoint(once, func(step string) error {
		if !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
		return nil
	})
	maintain(t, once)
	late := schematest.Pool(t) // the steps of closing
	enqueue(t, late)
	once = newKeeper(t, late, short)
	var closing []string
	schema.SetFailpoint(once, func(step string) error {
		closing = append(closing, step)
		return nil
	})
	maintain(t, once)
	if len(steps) < 12 || !slices.Contains(steps, "swapping") || !slices.Contains(closing, "validated job") {
		t.Fatalf("the steps are %q and %q", steps, closing)
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			killedAt(t, newAged(t), step)
		})
	}
	for _, step := range closing {
		t.Run("closing/"+step, func(t *testing.T) {
			t.Parallel()
			a := aged{pool: schematest.Pool(t), ids: map[string]int64{}}
			a.ids["pending"] = enqueue(t, a.pool)
			killedAt(t, a, step)
		})
	}
}

var errKilled = errors.New("killed")

func killedAt(t *testing.T, a aged, step string) {
	t.Helper()
	k := newKeeper(t, a.pool, short)
	ctx, kill := context.WithCancel(t.Context())
	schema.SetFailpoint(k, func(at string) error {
		if at == step {
			kill() // nothing else of this pass may run
			return errKilled
		}
		return nil
	})
	if _, err := k.Maintain(ctx); !errors.Is(err, errKilled) {
		t.Fatalf("the pass was not killed: %v", err)
	}
	for name, id := range a.ids {
		if in := partitionOf(t, a.pool, id); in == "" && !strings.HasSuffix(name, "long ago") {
			t.Errorf("after the kill, job %q is gone", name)
		}
	}
	a.ids["young"] = enqueue(t, a.pool)
	end(t, a.pool, a.ids["young"], "completed", 0)
	k = newKeeper(t, a.pool, short)
	maintain(t, k)
	if len(a.ids) > 2 {
		a.check(t)
	}
	contiguous(t, k)
	if in := partitionOf(t, a.pool, a.ids["young"]); in == "job_rest" || in == "" {
		t.Errorf("a new job is in %q", in)
	}
	if n := count(t, a.pool, "pg_class WHERE relname ~ '_(next|gone)_' AND relkind = 'r'"); n != 0 {
		t.Errorf("%d tables are left behind", n)
	}
	if ahead, err := k.Ahead(t.Context()); err != nil || ahead[0].Partitions < 2 {
		t.Errorf("partitions ahead: %+v, %v", ahead, err)
	}
}

// What changes between the copy and the swap is not lost: a retry of a job that would have been dropped, the end of a running one, a
// job that comes late, the deletion of a survivor.
func TestChangesDuringTheSwap(t *testing.T) {
	t.Parallel()
	a := newAged(t)
	k := newKeeper(t, a.pool, short)
	var late int64
	schema.SetFailpoint(k, func(step string) error {
		if step != "copied" {
			return nil
		}
		id := a.ids["ended long ago"]
		end(t, a.pool, id, "retried", 0)
		ready(t, a.pool, id, 3)
		end(t, a.pool, a.ids["running"], "completed", 0)
		late = enqueued(t, a.pool, 9*hour)
		end(t, a.pool, late, "completed", 0)
		mustExec(t, a.pool, "DELETE FROM pelton.job WHERE id = $1", a.ids["pending"])
		return nil
	})
	maintain(t, k)
	for id, want := range map[int64]int{a.ids["ended long ago"]: 2, a.ids["running"]: 1, late: 1} {
		if in := partitionOf(t, a.pool, id); in != "job_old" {
			t.Errorf("job %d is in %q", id, in)
		}
		if n := count(t, a.pool, "pelton.job_attempt WHERE job_id = $1", id); n != want {
			t.Errorf("job %d has %d attempts, want %d", id, n, want)
		}
	}
	if in := partitionOf(t, a.pool, a.ids["pending"]); in != "" {
		t.Errorf("a deleted job came back, in %q", in)
	}
}

// A transaction that holds a finished job's partition keeps it from being swapped, however it goes on.
func TestLockedPartitionIsNotSwapped(t *testing.T) {
	t.Parallel()
	a := newAged(t)
	id := a.ids["ended long ago"]
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if held, err := schema.LockPartition(t.Context(), tx, "pelton", id); err != nil || !held {
		t.Fatal(held, err)
	}
	k := newKeeper(t, a.pool, short)
	if report := maintain(t, k); len(report.Postponed) == 0 {
		t.Fatalf("%+v", report)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES ($1, 2, 'retried', 1)", id); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	maintain(t, k)
	if in := partitionOf(t, a.pool, id); in != "job_old" {
		t.Fatalf("the retried job is in %q", in)
	}
}

// Once in an _old partition, a job is deleted row by row, but not while somebody revives it.
func TestLockedJobIsNotSwept(t *testing.T) {
	t.Parallel()
	a := newAged(t)
	maintain(t, newKeeper(t, a.pool, short))
	id := a.ids["ended lately"]
	mustExec(t, a.pool, "UPDATE pelton.job_attempt SET ended_at = ended_at - interval '1 day' WHERE job_id = $1", id)
	tx, err := a.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if held, err := schema.LockPartition(t.Context(), tx, "pelton", id); err != nil || !held {
		t.Fatal(held, err)
	}
	if _, err := tx.Exec(t.Context(), "INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES ($1, 2, 'retried', 1)", id); err != nil {
		t.Fatal(err)
	}
	if report := maintain(t, newKeeper(t, a.pool, short)); report.Deleted["job"] != 0 {
		t.Fatalf("%+v", report)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := maintain(t, newKeeper(t, a.pool, short)); report.Deleted["job"] != 0 {
		t.Fatalf("%+v", report)
	}
	if in := partitionOf(t, a.pool, id); in != "job_old" {
		t.Fatalf("the revived job is in %q", in)
	}
}

// A report that reads job for hours delays maintenance, never an enqueue, and is named.
func TestLongSelectDelaysMaintenanceOnly(t *testing.T) {
	t.Parallel()
	a := newAged(t)
	conn, err := pgx.Connect(t.Context(), a.pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, sql := range []string{"BEGIN", "DECLARE report CURSOR FOR SELECT * FROM pelton.job, pelton.job_attempt, pelton.job_log, pelton.schedule_tick", "FETCH 1 FROM report"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	k := newKeeper(t, a.pool, short)
	waits := map[string]int{}
	schema.SetFailpoint(k, func(step string) error {
		if strings.HasPrefix(step, "wait ") {
			waits[step]++
			enqueue(t, a.pool) // between two tries nothing is held; the test's pool would wait for ever otherwise
		}
		return nil
	})
	stop, inserted := make(chan struct{}), make(chan int)
	go func() { // and throughout, as an enqueuer that gives up after two seconds
		n := 0
		defer func() { inserted <- n }()
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := a.pool.Exec(t.Context(), "SET statement_timeout = '2s'; INSERT INTO pelton.job (kind, args) VALUES ('k', '{}')"); err != nil {
					t.Errorf("an enqueue during maintenance: %v", err)
					return
				}
				n++
			}
		}
	}()
	report := maintain(t, k)
	close(stop)
	if n := <-inserted; n == 0 {
		t.Error("nothing was inserted")
	}
	if len(report.Postponed) < 3 || len(report.Dropped)+len(report.Created) != 0 || len(waits) < 3 {
		t.Fatalf("waited for %v: %+v", slices.Sorted(maps.Keys(waits)), report)
	}
	for _, p := range report.Postponed {
		if !slices.ContainsFunc(p.Blockers, func(b schema.Blocker) bool {
			return b.PID == int(conn.PgConn().PID()) && strings.Contains(b.Query, "FETCH")
		}) {
			t.Errorf("%v does not name the report, pid %d", p, conn.PgConn().PID())
		}
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if report := maintain(t, k); len(report.Postponed) != 0 || len(report.Dropped) == 0 {
		t.Fatalf("after the report: %+v", report)
	}
	a.check(t)
}

// A partition with many survivors stays; those behind it are dropped all the same, and go into job_old when it has gone.
func TestManySurvivorsKeepTheirPartition(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	past(t, pool, 10)
	many := []int64{enqueued(t, pool, 8*hour)}
	for n := range int64(4) {
		many = append(many, many[0]+n+1)
		mustExec(t, pool, "INSERT INTO pelton.job (id, kind, args) VALUES ($1, 'k', '{}')", many[n+1])
	}
	one, gone := enqueued(t, pool, 6*hour), enqueued(t, pool, 6*hour)
	end(t, pool, gone, "completed", 5*hour)
	config := short
	config.MaxSurvivors = 4
	k := newKeeper(t, pool, config)
	report := maintain(t, k)
	if len(report.Kept) != 1 || report.Kept[0] != partitionOf(t, pool, many[0]) {
		t.Fatalf("%+v", report)
	}
	if in := partitionOf(t, pool, one); !strings.HasPrefix(in, "job_old_") {
		t.Errorf("a survivor behind is in %q", in)
	}
	if in := partitionOf(t, pool, gone); in != "" {
		t.Errorf("a job past its retention is in %q", in)
	}
	contiguous(t, k)
	if report = maintain(t, k); len(report.Dropped) != 0 || len(report.Kept) != 1 {
		t.Errorf("a second pass: %+v", report)
	}
	for _, id := range many {
		end(t, pool, id, "completed", 5*hour)
	}
	k = newKeeper(t, pool, config) // one that counts again
	maintain(t, k)
	if in := partitionOf(t, pool, one); in != "job_old" {
		t.Errorf("the survivor is in %q in the end", in)
	}
	contiguous(t, k)
}

func TestOneKeeperAtATime(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	one, other := newKeeper(t, pool, short), newKeeper(t, pool, short)
	asked := false
	schema.SetFailpoint(one, func(string) error {
		if !asked {
			asked = true
			if report, err := other.Maintain(t.Context()); err != nil || !report.Busy {
				t.Errorf("a second keeper: %+v, %v", report, err)
			}
		}
		return nil
	})
	maintain(t, one)
	if !asked {
		t.Fatal("nobody asked")
	}
	maintain(t, other)
}

// An interrupted pass leaves tables that are no partitions; the way down finds them.
func TestDownWithPartitionsAndLeftovers(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"created job", "made next", "copied", "swapped", ""} {
		t.Run(fmt.Sprintf("%q", step), func(t *testing.T) {
			t.Parallel()
			a := newAged(t)
			k := newKeeper(t, a.pool, short)
			schema.SetFailpoint(k, func(at string) error {
				if at == step {
					return errKilled
				}
				return nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if _, err := k.Maintain(ctx); step != "" && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			dsn := a.pool.Config().ConnString()
			if err := schema.Down(t.Context(), dsn, "pelton"); err != nil {
				t.Fatal(err)
			}
			if left := catalog(t, a.pool, "pelton"); len(left) != 0 {
				t.Fatalf("down leaves\n%s", strings.Join(left, "\n"))
			}
			mustUp(t, dsn, "pelton")
			enqueue(t, pgtest.Pool(t, dsn))
		})
	}
}

// Nothing is inherited from the session by luck.
func TestUnderOtherSessionSettings(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]func(*pgxpool.Config){
		"simple protocol":    func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol },
		"no statements kept": func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec },
		"repeatable read, short timeouts": func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
			c.ConnConfig.RuntimeParams["lock_timeout"] = "1h"
			c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "1s"
			c.ConnConfig.RuntimeParams["search_path"] = "pg_catalog"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAged(t, option)
			k := newKeeper(t, a.pool, short)
			maintain(t, k)
			a.check(t)
			contiguous(t, k)
		})
	}
}
