package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

// schedulers are processes that fire schedules; the database knows each by its name.
type schedulers struct {
	*shell

	running map[string]*process
	started int
}

func (s *schedulers) start() {
	s.t.Helper()
	s.started++
	name := fmt.Sprintf("scheduler%d", s.started)
	separator := "?"
	if strings.Contains(s.url, "?") {
		separator = "&"
	}
	s.running[name] = launch(s.t, []string{"DATABASE_URL=" + s.url + separator + "application_name=" + name},
		append([]string{"server", "--listen", "", "--json"}, quick...)...)
}

// busiest waits until one of them fires, and returns it: its transaction is open.
func (s *schedulers) busiest() (name string) {
	s.t.Helper()
	pgtest.Retry(s.t, patience, func(ctx context.Context) error {
		return s.pool().QueryRow(ctx, `SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.relation = 'pelton.schedule_tick'::regclass AND l.mode = 'RowExclusiveLock' AND a.application_name LIKE 'scheduler%'
				AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			ORDER BY a.xact_start LIMIT 1`).Scan(&name)
	})
	return name
}

// progress waits until some more ticks have fired: those who are always killed at their first get nothing done.
func (s *schedulers) progress() {
	s.t.Helper()
	before := s.ticks()
	pgtest.Eventually(s.t, patience, func() bool { return s.ticks() >= before+300 }, "more ticks than %d", before)
}

func (s *schedulers) ticks() (n int) {
	s.t.Helper()
	if err := s.pool().QueryRow(s.t.Context(), `SELECT count(*) FROM pelton.schedule_tick`).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Five schedulers fire a thousand schedules, and again and again the one that is just firing is killed: every tick has exactly one run, and there is no
// run but those.
func TestBusiestSchedulerIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := &schedulers{shell: newShell(t), running: map[string]*process{}}
	if _, err := s.pool().Exec(t.Context(), `WITH stored AS (
			INSERT INTO pelton.schedule (name, spec)
			SELECT 's' || n, json_build_object('every', '4s', 'phase', to_char(timestamptz 'epoch' + n * interval '4 ms', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
				'missed', 'all:1000', 'job', json_build_object('kind', 'noop'))
			FROM generate_series(1, 1000) n RETURNING id)
		INSERT INTO pelton.schedule_due (schedule_id, decided, wake) SELECT id, clock_timestamp(), clock_timestamp() FROM stored`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool().Exec(t.Context(), `CREATE TABLE stored AS SELECT schedule_id, decided FROM pelton.schedule_due`); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		s.start()
	}
	begun, kills := time.Now(), 0
	for kills < 10 || pgtest.FullSize() && time.Since(begun) < 10*time.Minute {
		s.progress()
		name := s.busiest()
		if victim := s.running[name]; victim != nil {
			victim.kill()
			delete(s.running, name)
			kills++
			s.start()
		}
	}
	pgtest.Eventually(t, patience, func() bool { // all have caught up, and gone on
		var behind int
		err := s.pool().QueryRow(t.Context(), `SELECT count(*) FROM pelton.schedule_due
			WHERE next_at IS NULL OR next_at < clock_timestamp() - interval '1 s'`).Scan(&behind)
		return err == nil && behind == 0
	}, "the schedules to catch up")
	for _, p := range s.running {
		p.kill()
	}
	rows, err := s.pool().Query(t.Context(), `SELECT f.schedule_id || ': ' || f.n || ' of ' || f.want || ' ticks fired, ' || f.jobs || ' jobs' FROM (
			SELECT t.schedule_id, count(*) FILTER (WHERE t.outcome = 'fired') AS n,
				floor(extract(epoch FROM max(t.at) - s.decided) / 4) + 1 AS want, count(DISTINCT t.job_id) AS jobs
			FROM pelton.schedule_tick t JOIN stored s USING (schedule_id) GROUP BY t.schedule_id, s.decided) f WHERE f.n <> f.want OR f.jobs <> f.n`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var fault string
		if err := rows.Scan(&fault); err != nil {
			t.Fatal(err)
		}
		t.Error(fault)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	var schedules, ticks, jobs int
	if err := s.pool().QueryRow(t.Context(), `SELECT (SELECT count(DISTINCT schedule_id) FROM pelton.schedule_tick), (SELECT count(*) FROM pelton.schedule_tick),
			(SELECT count(*) FROM pelton.job)`).Scan(&schedules, &ticks, &jobs); err != nil {
		t.Fatal(err)
	}
	if schedules != 1000 || jobs != ticks {
		t.Errorf("%d schedules have fired %d ticks, and there are %d jobs", schedules, ticks, jobs)
	}
	t.Logf("%d ticks of %d schedules, %d schedulers killed in %v", ticks, schedules, kills, time.Since(begun).Round(time.Second))
}
