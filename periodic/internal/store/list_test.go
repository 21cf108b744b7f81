package store

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// A page of schedules looks up the last ticks of those on it, and not of all, also by a plan for all values.
func TestListLooksUpTicksOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, sql := range []string{
		`INSERT INTO pelton.schedule (name, spec) SELECT 's' || n, '{}' FROM generate_series(1, 1000) n`,
		`INSERT INTO pelton.schedule_due (schedule_id, decided) SELECT id, now() FROM pelton.schedule`,
		`INSERT INTO pelton.schedule_tick (schedule_id, tick, n, at, source, outcome)
			SELECT s.id, pelton.tick_key(now()), n, now(), 'clock', 'fired' FROM pelton.schedule s, generate_series(1, 3) n`,
		`ANALYZE`,
	} {
		execOn(t, s.Pool, sql)
	}
	const calls, limit = 10, 5
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SET LOCAL plan_cache_mode = force_generic_plan"); err != nil { // which a connection may make that has asked five times
			return err
		}
		looks := func() (n int64) {
			// What the connection did before may be in the numbers of this transaction too.
			if err := tx.QueryRow(t.Context(), `SELECT sum(idx_scan) FROM pg_stat_xact_user_tables WHERE relname = 'schedule_tick_rest'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := looks()
		for range calls {
			rows, err := s.Schedules(t.Context(), tx, ScheduleFilter{Limit: limit})
			if err != nil {
				return err
			}
			if len(rows) != limit || rows[0].Name != "s1" || rows[1].Name != "s10" || rows[0].TickN == nil || *rows[0].TickN != 3 {
				t.Errorf("the list has %d schedules: %+v", len(rows), rows)
			}
		}
		if n := looks() - before; n > calls*limit {
			t.Errorf("ticks of %d schedules were looked up for %d lists of %d", n, calls, limit)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
