package store_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// explain returns the plan of a statement under the settings of a claim. values are literals, not parameters, so that a plan
// for all values can be had as well as one for these.
func explain(t *testing.T, pool *pgxpool.Pool, mode, sql string, values ...string) string {
	t.Helper()
	var plan []string
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		settings, args := store.ClaimSettings()
		if _, err := tx.Exec(t.Context(), settings, args...); err != nil {
			return err
		}
		for _, statement := range []string{"SET LOCAL plan_cache_mode = " + mode, "PREPARE asked AS " + sql} {
			if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		rows, err := tx.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE asked ("+strings.Join(values, ", ")+")", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		if plan, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
		_, err = tx.Exec(t.Context(), "DEALLOCATE asked", pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

var fullScan = regexp.MustCompile(`(Seq|Bitmap Heap) Scan on job_ready`)

// TestClaimStartsAtTheMark wants the claim to enter the line by its index at the mark, without a sort, whatever the statistics
// say: of a table that was analysed while it was empty, and of one with a hundred thousand tickets.
func TestClaimStartsAtTheMark(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, schema.DefaultName)
	for _, fill := range []struct{ what, sql string }{
		{"empty, analysed", `ANALYZE pelton.job_ready`},
		{"filled, as if empty", `INSERT INTO pelton.job_ready (priority, line, job_ids)
			SELECT 1 + n % 4, 'line' || n % 50, ARRAY[n] FROM generate_series(1, 100000) n`},
		{"filled, analysed", `ANALYZE pelton.job_ready`},
	} {
		if _, err := pool.Exec(t.Context(), fill.sql); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, pool, mode, s.Statement("claim"), "1", "1", "'{line1,line2}'", "'{1,2}'", "'{99000,0}'", "'{0,60}'", "10", "500")
			_, head, _ := strings.Cut(plan, "CTE head")
			head, _, _ = strings.Cut(head, "CTE take")
			for _, want := range []string{"Index Scan using job_ready_head", "(seq >= p.mark)"} {
				if !strings.Contains(head, want) {
					t.Errorf("%s, %s: the head is read without %q", fill.what, mode, want)
				}
			}
			if strings.Contains(head, "Sort") || fullScan.MatchString(plan) {
				t.Errorf("%s, %s: the head is sorted, or the line is read whole", fill.what, mode)
			}
			if t.Failed() {
				t.Fatal(plan)
			}
		}
	}
}

var partitionRead = regexp.MustCompile(`on (job(?:_attempt)?_(?:p_|old|rest)[a-z0-9_]*)`)

// TestClaimedJobsAreReadFromTheirPartition wants reads of a thousand claimed jobs to touch only the partitions of their ids, of
// four hundred.
func TestClaimedJobsAreReadFromTheirPartition(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("makes 1,200 partitions")
	}
	pool := schematest.Pool(t)
	keeper, err := schema.NewKeeper(pool, schema.DefaultName, schema.KeeperConfig{PartitionSize: time.Hour, Ahead: 400})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var partitions int
	var ids []int64
	if err := pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'pelton.job'::regclass),
		(SELECT array_agg(pelton.id_at(now() + interval '100 hours') + n) FROM generate_series(1, 1000) n)`).Scan(&partitions, &ids); err != nil {
		t.Fatal(err)
	}
	if partitions < 400 {
		t.Fatalf("there are %d partitions", partitions)
	}
	s := store.New(pool, schema.DefaultName)
	list := strings.NewReplacer("[", "'{", "]", "}'", " ", ",").Replace(fmt.Sprint(ids))
	for _, name := range []string{"read", "read_attempts", "outcomes"} {
		values := []string{list, fmt.Sprint(ids[0]), fmt.Sprint(ids[len(ids)-1])}
		if name != "read" {
			values = append(values, "array_fill(2, '{1000}')", fmt.Sprint(store.EarlierRuns))
		}
		plan := explain(t, pool, "force_custom_plan", s.Statement(name), values...)
		read := map[string]bool{}
		for _, found := range partitionRead.FindAllStringSubmatch(plan, -1) {
			read[found[1]] = true
		}
		if len(read) != 1 {
			t.Errorf("%s reads %d partitions, want one:\n%s", name, len(read), plan)
		}
	}
}
