package periodic

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/schema/schematest"
)

// Whether the run before has ended is seen for every way in which a job can stand.
func TestHowTheRunBeforeStands(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		sql  string // $1: the job
		ends bool
	}{
		"waits":                         {`SELECT $1::bigint`, false},
		"has failed and is tried again": {`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'errored')`, false},
		"has completed":                 {`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'completed')`, true},
		"was given up":                  {`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'discarded')`, true},
		"has completed and runs again":  {`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'completed'), ($1, 2, 1, 'retried')`, false},
		"was cancelled while it waited": {`SELECT pelton.cancel($1, 'test')`, true},
		"is gone":                       {`WITH t AS (DELETE FROM pelton.job_ready) DELETE FROM pelton.job WHERE id = $1`, true},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, schematest.Pool(t))
			s := eachSecond("s", 0)
			s.Overlap, s.Missed = OverlapSkip, MissedLatest
			id := r.stored(s, 2*time.Second)
			if _, err := r.firer.fire(t.Context()); err != nil {
				t.Fatal(err)
			}
			job := one[int64](t, r.pool, `SELECT live_job FROM pelton.schedule_due`)
			exec(t, r.pool, c.sql, job)
			exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now(), decided = decided - interval '1 second', next_at = decided`)
			exec(t, r.pool, `DELETE FROM pelton.schedule_tick`)
			if _, err := r.firer.fire(t.Context()); err != nil {
				t.Fatal(err)
			}
			fired := one[bool](t, r.pool, `SELECT bool_or(outcome = 'fired') FROM pelton.schedule_tick WHERE schedule_id = $1`, id)
			if fired != c.ends {
				t.Errorf("the next tick fires: %v, ticks %v", fired, r.ticks(id))
			}
		})
	}
}

// A fixed delay is counted from now on when nobody knows when the run before ended, because it is gone.
func TestDelayAfterARunThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRigOn(t, schematest.Pool(t))
	id := r.stored(Schedule{Name: "s", Delay: Duration(time.Hour), Job: task("x")}, 0)
	if _, err := r.firer.fire(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, r.pool, `WITH t AS (DELETE FROM pelton.job_ready) DELETE FROM pelton.job`)
	exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now()`)
	if _, err := r.firer.fire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !one[bool](t, r.pool, `SELECT next_at BETWEEN now() + interval '59 minutes' AND now() + interval '61 minutes' FROM pelton.schedule_due`) || len(r.ticks(id)) != 1 {
		t.Errorf("next at %v, ticks %v", one[*time.Time](t, r.pool, `SELECT next_at FROM pelton.schedule_due`), r.ticks(id))
	}
}

// All that the firer asks works in each way of asking that poolers call for.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, schematest.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			f, err := flow.New("f").Noop("n").Build()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.flows.PushFlows(t.Context(), "p", f); err != nil {
				t.Fatal(err)
			}
			at := r.now().Truncate(time.Second)
			r.coded["svc/code"] = &coded{target: func(time.Time) (*job, error) { return &job{burst{}, &river.InsertOpts{}}, nil }}
			r.firer.codes = []string{"svc/code"}
			r.storedAs(Schedule{Name: "code", At: &at}, fmt.Sprintf(`{"at": %q}`, at.Format(time.RFC3339)), "svc", time.Minute)
			rate := eachSecond("rate", 0)
			rate.Overlap, rate.Missed = OverlapQueue, MissedAll(3, 0)
			run := Schedule{Name: "run", Every: Duration(time.Second), Flow: &FlowTarget{Project: "p", Flow: "f"}, Overlap: OverlapCancel}
			ids := []int64{
				r.stored(rate, time.Hour), r.stored(run, time.Minute), r.stored(once("bad", at, task("")), time.Minute),
				r.stored(once("broken", at, nil), time.Minute),
			}
			for range 2 {
				r.fireAll()
				exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now() WHERE wake IS NOT NULL AND failures = 0`)
			}
			if next, err := r.store.NextDue(t.Context(), r.firer.floor.Floor(), r.firer.codes); err != nil || !next.Any {
				t.Errorf("next: %+v, %v", next, err)
			}
			got := list[string](t, r.pool, `SELECT s.name || ' ' || t.outcome || coalesce(' ' || t.reason, '') FROM pelton.schedule_tick t
				JOIN pelton.schedule s ON s.id = t.schedule_id WHERE t.outcome <> 'skipped' GROUP BY 1, s.name ORDER BY 1`)
			if want := []string{"bad failed refused", "code fired", "rate fired", "run fired"}; !slices.Equal(got, want) {
				t.Errorf("ticks: %v, want %v", got, want)
			}
			if n := one[int](t, r.pool, `SELECT failures FROM pelton.schedule_due WHERE schedule_id = $1`, ids[3]); n == 0 {
				t.Error("what cannot be read was not put off")
			}
		})
	}
}

type burst struct{}

func (burst) Kind() string { return "burst" }
