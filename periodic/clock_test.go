package periodic

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// started starts clients and stops them with the test, before the pools are closed.
func started(t *testing.T, rigs ...*rig) {
	t.Helper()
	for _, r := range rigs {
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, r := range rigs {
			r.Stop()
		}
	})
}

// eachSecond is a schedule whose ticks have a phase.
func eachSecond(name string, phase time.Duration) Schedule {
	at := time.Unix(0, 0).Add(phase)
	return Schedule{Name: name, Every: Duration(time.Second), Phase: &at, Missed: MissedAll(1000, 0), Job: task("x")}
}

// gaps are the schedules that lack a tick between their first and their last one, or have one twice, or whose runs are not those of their ticks.
const gaps = `SELECT s.name || ': ' || f.n || ' of ' || f.want || ' fired, ' || f.jobs || ' jobs' FROM pelton.schedule s JOIN (
		SELECT t.schedule_id, count(*) FILTER (WHERE t.outcome = 'fired') AS n,
			round(extract(epoch FROM max(t.at) - min(t.at))) + 1 AS want, count(DISTINCT t.job_id) AS jobs
		FROM pelton.schedule_tick t GROUP BY t.schedule_id
	) f ON f.schedule_id = s.id WHERE f.n <> f.want OR f.jobs <> f.n`

// strayJobs are those of schedules that no tick has.
const strayJobs = `SELECT count(*) FROM pelton.job j WHERE j.metadata ? 'pelton:schedule'
	AND NOT EXISTS (SELECT FROM pelton.schedule_tick t WHERE t.job_id = j.id)`

func (r *rig) checkGaps() {
	r.t.Helper()
	for _, fault := range list[string](r.t, r.pool, gaps) {
		r.t.Error(fault)
	}
	if n := one[int](r.t, r.pool, strayJobs); n > 0 {
		r.t.Errorf("%d jobs are of no tick", n)
	}
}

// Ticks close to each other, and close before a look, are not lost, however often firers look.
func TestTicksBetweenLooksAreNotLost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRigOn(t, r.pool)
	for i, phase := range []int{0, 888, 889, 999} {
		r.stored(eachSecond(fmt.Sprint(i), time.Duration(phase)*time.Millisecond), 0)
	}
	started(t, r, other)
	pgtest.Eventually(t, patience, func() bool {
		r.firer.nudge()
		other.firer.nudge()
		return one[bool](t, r.pool, `SELECT count(*) >= 16 FROM pelton.schedule_tick`)
	}, "ticks")
	r.Stop()
	other.Stop()
	r.checkGaps()
}

// Hosts' clocks that are 90 seconds off the database's, both ways: the database's decides, and each tick runs once. It is the database's that is
// shifted here, for all sessions.
func TestClocksOfHostsDoNotMatter(t *testing.T) {
	t.Parallel()
	for _, off := range []string{"90 seconds", "-90 seconds"} {
		t.Run(off, func(t *testing.T) {
			t.Parallel()
			dsn := schematest.DSN(t)
			direct := pgtest.Pool(t, dsn)
			exec(t, direct, `CREATE SCHEMA off`)
			for name, kind := range map[string]string{"now()": "STABLE", "clock_timestamp()": "VOLATILE"} {
				exec(t, direct, fmt.Sprintf(`CREATE FUNCTION off.%[1]s RETURNS timestamptz LANGUAGE sql %[2]s AS $$ SELECT pg_catalog.%[1]s + interval '%[3]s' $$`,
					name, kind, off))
			}
			shifted := func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = "off, pg_catalog" }
			r, other := newRigOn(t, pgtest.Pool(t, dsn, shifted)), newRigOn(t, pgtest.Pool(t, dsn, shifted))
			if ahead := time.Until(r.now()); ahead.Abs() < 80*time.Second {
				t.Fatalf("the database's clock is only %v ahead", ahead)
			}
			for i := range 20 {
				r.stored(eachSecond(fmt.Sprint(i), time.Duration(i)*50*time.Millisecond), 0)
			}
			started(t, r, other)
			pgtest.Eventually(t, patience, func() bool { return one[bool](t, r.pool, `SELECT count(*) >= 60 FROM pelton.schedule_tick`) }, "ticks")
			r.Stop()
			other.Stop()
			r.checkGaps()
			if early := one[int](t, r.pool, `SELECT count(*) FROM pelton.schedule_tick WHERE decided_at < at OR decided_at > at + interval '60 s'`); early > 0 {
				t.Errorf("%d ticks were decided before their time, or long after it", early)
			}
		})
	}
}

// 4,000 schedules in a minute and 10,000 in a second, fired by two: none is lost, none runs twice.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRigOn(t, r.pool)
	at := r.now().Truncate(time.Second)
	storeMany := func(prefix string, n int, at time.Time) {
		exec(t, r.pool, `WITH stored AS (
				INSERT INTO pelton.schedule (name, spec) SELECT $1::text || n, json_build_object('name', $1::text || n, 'at', $3::timestamptz, 'job', json_build_object('kind', 'x'))
				FROM generate_series(1, $2::integer) n RETURNING id)
			INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake) SELECT id, $3::timestamptz - interval '1 hour', $3, clock_timestamp() FROM stored`,
			prefix, n, at)
	}
	storeMany("minute", 4000, at.Truncate(time.Minute))
	storeMany("second", 10_000, at)
	var both sync.WaitGroup
	for _, c := range []*rig{r, other} {
		both.Go(func() {
			for {
				n, err := c.firer.fire(context.WithoutCancel(t.Context()))
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 {
					return
				}
			}
		})
	}
	both.Wait()
	got := one[string](t, r.pool, `SELECT concat_ws(' ', count(*), count(DISTINCT schedule_id), count(DISTINCT job_id), count(*) FILTER (WHERE outcome <> 'fired'),
		(SELECT count(*) FROM pelton.job)) FROM pelton.schedule_tick`)
	if got != "14000 14000 14000 0 14000" {
		t.Errorf("ticks, schedules, jobs of ticks, not fired, jobs: %s", got)
	}
}

// The database is away for five seconds, exactly at the ticks: the runs come after it is back, once.
func TestDatabaseAwayAtTheTick(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	cluster := pgtest.NewCluster(t, postgres.Config{NoSync: true})
	if err := schema.Up(t.Context(), cluster.DSN("postgres"), schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	r := newRigOn(t, pgtest.Pool(t, cluster.DSN("postgres")))
	other := newRigOn(t, pgtest.Pool(t, cluster.DSN("postgres")))
	at := r.now().Truncate(time.Second).Add(4 * time.Second)
	var ids []int64
	for i := range 20 {
		ids = append(ids, r.stored(once(fmt.Sprint(i), at.Add(time.Duration(i)*100*time.Millisecond), task("x")), time.Minute))
	}
	started(t, r, other)
	pgtest.Eventually(t, patience, func() bool { return !r.now().Before(at.Add(-time.Second)) }, "the second before the tick")
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	away := time.NewTimer(5 * time.Second) // that is the scenario
	<-away.C
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		var n int
		if err := r.pool.QueryRow(ctx, `SELECT count(*) FROM pelton.schedule_tick WHERE outcome = 'fired' AND decided_at > at`).Scan(&n); err != nil {
			return err
		}
		if n < len(ids) {
			return fmt.Errorf("%d of %d have fired", n, len(ids))
		}
		return nil
	})
	r.Stop()
	other.Stop()
	if n := one[int](t, r.pool, `SELECT count(*) FROM pelton.job`); n != len(ids) {
		t.Errorf("%d jobs, want %d", n, len(ids))
	}
	schematest.Audit(t, r.pool)
}
