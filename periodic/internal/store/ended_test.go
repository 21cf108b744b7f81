package store

import (
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/schema"
)

var partition = regexp.MustCompile(`on (job_attempt_\w+)`)

// Whether runs have ended is read in the partitions of their jobs alone, by keys.
func TestReadOfEndsPrunes(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	keeper, err := schema.NewKeeper(s.Pool, "pelton", schema.KeeperConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	execOn(t, s.Pool, `SELECT pelton.enqueue('x') FROM generate_series(1, 500)`)
	execOn(t, s.Pool, `INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) SELECT id, 1, 1, 'completed' FROM pelton.job`)
	rows, err := s.Pool.Query(t.Context(), `SELECT id FROM pelton.job ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		t.Fatal(err)
	}
	plan := explain(t, s, true, "jobs_ended", pgx.QueryExecModeCacheDescribe, ids, ids[0], ids[len(ids)-1])
	var seen []string
	for _, m := range partition.FindAllStringSubmatch(plan, -1) {
		seen = append(seen, m[1])
	}
	slices.Sort(seen)
	if seen = slices.Compact(seen); len(seen) == 0 || len(seen) > 2 {
		t.Errorf("partitions %v are read:\n%s", seen, plan)
	}
	wants(t, "jobs_ended", plan, `Index (Only )?Scan( Backward)? using job_attempt_\w+ on job_attempt`, `not Seq Scan on job_attempt`)
	ended, err := s.JobsEnded(t.Context(), s.Pool, ids)
	if err != nil || len(ended) != len(ids) {
		t.Errorf("%d of %d have ended: %v", len(ended), len(ids), err)
	}
}
