package periodic

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const patience = time.Minute

// rig is a client of schedules on a database of its own, which fires when it is told to.
type rig struct {
	*Client

	t     *testing.T
	pool  *pgxpool.Pool
	queue *jobs.Client
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, schematest.Audited(t))
}

func newRigOn(t *testing.T, pool *pgxpool.Pool) *rig {
	t.Helper()
	awaitHour(t)
	log := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	queue, err := jobs.NewClient(pool, &jobs.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	flows, err := flow.NewClient(pool, queue, &flow.Config{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(pool, queue, flows, &Config{Logger: log, putOff: time.Hour}) // what is put off stays so until the test says otherwise
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Client: c, t: t, pool: pool, queue: queue}
}

// awaitHour waits for the next full hour if it is near: a tick of each hour does not come while a test counts them.
func awaitHour(t *testing.T) {
	t.Helper()
	if wait := time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)); wait < patience/2 {
		<-time.After(wait)
	}
}

// testWriter prints what is logged with the test.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil { // afterwards nobody may
		w.t.Logf("%s", p)
	}
	return len(p), nil
}

// task is a target that is a job.
func task(kind string) *JobTarget { return &JobTarget{Kind: kind} }

// stored stores a schedule whose ticks up to ago before now have been decided, and returns its id.
func (r *rig) stored(s Schedule, ago time.Duration) int64 {
	r.t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.storedAs(s, string(spec), "", ago)
}

func (r *rig) storedAs(s Schedule, spec, owner string, ago time.Duration) (id int64) {
	r.t.Helper()
	err := r.store.Tx(r.t.Context(), store.Limits{}, func(tx pgx.Tx) error {
		var now time.Time
		ctx := r.t.Context()
		err := tx.QueryRow(ctx, `INSERT INTO pelton.schedule (name, spec, owner, code) VALUES ($1, $2::text::json, $3, $3 <> '')
			RETURNING id, clock_timestamp()`, s.Name, spec, owner).Scan(&id, &now)
		if err != nil {
			return err
		}
		var code *coded
		if owner != "" {
			code = r.coded[codeKey(owner, s.Name)]
		}
		from := now.Add(-ago)
		step := plan.Step{State: plan.State{Decided: from}, Wake: from}
		if c, err := s.compile(id, now, noTime, code); err == nil {
			step = plan.Renew(&c.spec, plan.State{}, from, from)
		}
		_, err = tx.Exec(ctx, `INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake, code)
			VALUES ($1, $2, $3, greatest($4, clock_timestamp()), nullif($5, ''))`,
			id, step.State.Decided, nullTime(step.State.Next), step.Wake, map[bool]string{true: codeKey(owner, s.Name)}[owner != ""])
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// once is a schedule with one tick.
func once(name string, at time.Time, target *JobTarget) Schedule {
	return Schedule{Name: name, At: &at, Job: target}
}

// now is the database's time.
func (r *rig) now() time.Time { return one[time.Time](r.t, r.pool, `SELECT clock_timestamp()`) }

// fireAll fires until nothing is due, and returns how many schedules were taken.
func (r *rig) fireAll() (n int) {
	r.t.Helper()
	for {
		fired, err := r.firer.fire(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		if fired == 0 && !one[bool](r.t, r.pool, `SELECT EXISTS (SELECT FROM pelton.schedule_due WHERE wake <= now())`) {
			return n
		}
		n += fired
	}
}

func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	rows, err := pool.Query(context.WithoutCancel(t.Context()), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func list[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := pgx.CollectRows(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// exec runs a statement in READ COMMITTED, whatever the default is.
func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ticks are what became of a schedule's ticks, in order: outcome, reason, note.
func (r *rig) ticks(id int64) []string {
	r.t.Helper()
	return list[string](r.t, r.pool, `SELECT concat_ws(' ', outcome, reason, note) FROM pelton.schedule_tick
		WHERE schedule_id = $1 ORDER BY at, n`, id)
}
