package store

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema/schematest"
)

// fill stores 100,000 schedules of which 1,500 are due, and as many that only some service can fire and that nobody will. The statistics are of
// when the tables were empty.
var fill = []string{
	`ANALYZE pelton.schedule, pelton.schedule_due`,
	`INSERT INTO pelton.schedule (name, spec) SELECT 's' || n, '{}' FROM generate_series(1, 101500) n`,
	`INSERT INTO pelton.schedule_due (schedule_id, wake, decided, code)
		SELECT id, now() + (CASE WHEN id <= 1500 OR id > 100000 THEN -interval '1 minute' + id % 1500 * interval '1 millisecond' ELSE id * interval '1 minute' END),
			now(), CASE WHEN id > 100000 THEN 'gone/s' || id END FROM pelton.schedule`,
}

func newStore(t *testing.T) *Store {
	t.Helper()
	return New(schematest.Pool(t), "pelton")
}

func execOn(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// explain is the plan of a statement as the firer runs it, many times on one connection.
func explain(t *testing.T, s *Store, analyze bool, name string, args ...any) (plan string) {
	t.Helper()
	how := "EXPLAIN (COSTS off) "
	if analyze {
		how = "EXPLAIN (ANALYZE, BUFFERS, COSTS off, TIMING off) "
	}
	err := s.Tx(t.Context(), Limits{Lock: time.Second, Head: true}, func(tx pgx.Tx) error {
		for range 7 { // from the sixth time on the plan may be a generic one
			rows, err := tx.Query(t.Context(), how+s.sql.Get(name), args...)
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				return err
			}
			plan = strings.Join(lines, "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return plan
}

// wants wants all of these in a plan, and none of those that begin with "not ".
func wants(t *testing.T, name, plan string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		pattern, unwanted := strings.CutPrefix(p, "not ")
		if regexp.MustCompile(pattern).MatchString(plan) == unwanted {
			t.Errorf("%s: want %s in its plan:\n%s", name, p, plan)
		}
	}
}

// What the firer runs reads what is due by the index, and nothing of what is stored beside.
func TestPlansOfTheFirer(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, statistics := range []string{"of the empty table", "of the full table"} {
		if statistics == "of the full table" {
			execOn(t, s.Pool, `ANALYZE pelton.schedule, pelton.schedule_due`)
		} else {
			for _, sql := range fill {
				execOn(t, s.Pool, sql)
			}
		}
		var ids []int64
		var versions []int32
		for id := int64(1); id <= 1000; id++ {
			ids, versions = append(ids, id), append(versions, 0)
		}
		wants(t, "claim "+statistics, explain(t, s, false, "claim", int64(1), 1000),
			`Index Scan using schedule_due_wake`, `Index Cond: \(\(wake >= .*\) AND \(wake <= now\(\)\)\)`, `not Seq Scan`, `not Sort`)
		wants(t, "claim_own "+statistics, explain(t, s, false, "claim_own", []string{"gone/s100001", "x/y"}, 1000),
			`Index Scan using schedule_due_code`, `not Seq Scan`)
		wants(t, "read "+statistics, explain(t, s, false, "read", ids, versions), `Index Scan using schedule_pkey`, `Nested Loop`, `not Seq Scan`)
		update := explain(t, s, false, "write_due", ids, nulls[time.Time](1000), nulls[time.Time](1000), nulls[time.Time](1000), nulls[time.Time](1000),
			nulls[time.Time](1000), nulls[time.Time](1000), nulls[int64](1000), nulls[int64](1000), nulls[time.Time](1000), nulls[bool](1000), nulls[int16](1000))
		wants(t, "write_due "+statistics, update, `Index Scan using schedule_due_pkey`, `Nested Loop`, `not Seq Scan`)
		// Functions' plans cannot be seen: look at how much is read.
		if n := pages(t, explain(t, s, true, "next", int64(1), []string{"gone/s100001", "x/y"})); n > 100 {
			t.Errorf("the look at the next schedule, %s, reads %d pages", statistics, n)
		}
	}
}

func nulls[T any](n int) []*T { return make([]*T, n) }

var buffers = regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)

// pages is how many pages a plan has touched.
func pages(t *testing.T, plan string) (n int) {
	t.Helper()
	m := buffers.FindStringSubmatch(plan)
	if m == nil {
		t.Fatalf("no buffers in\n%s", plan)
	}
	for _, text := range m[1:] {
		var k int
		_, _ = fmt.Sscan(text, &k) // empty: none
		n += k
	}
	return n
}

// A schedule that its owner alone can fire, and that is due, keeps nobody else awake and is in nobody's way.
func TestWhatNobodyCanFireIsInNobodysWay(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, sql := range fill {
		execOn(t, s.Pool, sql)
	}
	execOn(t, s.Pool, `DELETE FROM pelton.schedule_due WHERE code IS NULL AND wake < now()`)
	next, err := s.NextDue(t.Context(), 0, nil)
	if err != nil || !next.Any || next.In < time.Minute {
		t.Errorf("next: %+v, %v", next, err)
	}
	if next, err = s.NextDue(t.Context(), 0, []string{"gone/s100001"}); err != nil || next.In > 0 {
		t.Errorf("next of the owner: %+v, %v", next, err)
	}
	err = s.Tx(t.Context(), Limits{Lock: time.Second, Head: true}, func(tx pgx.Tx) error {
		if list, err := s.Claim(t.Context(), tx, 0, nil, 10); err != nil || len(list) > 0 {
			t.Errorf("%d are claimed: %v", len(list), err)
		}
		if list, err := s.Claim(t.Context(), tx, 0, []string{"gone/s100001"}, 10); err != nil || len(list) != 1 || list[0].ID != 100001 {
			t.Errorf("claimed by the owner: %v, %v", list, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
