package joblog_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// Of jobs that have run very often only the newest runs that printed something are measured, for each of them; of one job also those before a run, the newest first.
func TestSizesOfTheNewestRuns(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	var jobs []int64
	if err := pool.QueryRow(t.Context(), `SELECT pelton.job_ids(3)`).Scan(&jobs); err != nil {
		t.Fatal(err)
	}
	// The first has two streams in each run, the second printed in every tenth, the third not at all.
	for _, statement := range []string{
		`INSERT INTO pelton.job_log (job_id, run, pos, stream, data) SELECT $1::bigint, r, 0, s::"char", 'abc' FROM generate_series(1, 150) r, unnest('{o,e}'::text[]) s`,
		`INSERT INTO pelton.job_log (job_id, run, pos, stream, data) SELECT $1::bigint, 10 * r, 0, 'o', 'abcd' FROM generate_series(1, 12) r`,
	} {
		job := jobs[0]
		jobs = append(jobs[1:], job)
		if _, err := pool.Exec(t.Context(), statement, job); err != nil {
			t.Fatal(err)
		}
	}
	silent, first, second := jobs[0], jobs[1], jobs[2]
	for most, want := range map[int64][2]int{100: {200, 12}, 5: {10, 5}, 1: {2, 1}, 1 << 60: {300, 12}} {
		sizes, err := joblog.SizesOf(t.Context(), pool, schema.DefaultName, jobs, most)
		if err != nil {
			t.Fatal(err)
		}
		of, others := sizes[first], sizes[second]
		if len(of) != want[0] || len(others) != want[1] || len(sizes[silent]) > 0 {
			t.Errorf("at most %d runs: %d and %d sizes, want %v, and %d of a job that printed nothing", most, len(of), len(others), want, len(sizes[silent]))
			continue
		}
		if of[len(of)-1].Run != 150 || of[0].Run != 150-want[0]/2+1 || others[0].Run != 10*(12-want[1]+1) || of[0].Stored != 3 || others[0].Printed != 4 {
			t.Errorf("at most %d runs: from %s to %s", most, fmt.Sprint(of[0]), fmt.Sprint(of[len(of)-1]))
		}
	}
	before, err := joblog.SizesBefore(t.Context(), pool, schema.DefaultName, first, 100, 2)
	var runs []int
	for _, one := range before {
		runs = append(runs, one.Run)
	}
	if err != nil || !slices.Equal(runs, []int{99, 99, 98, 98}) {
		t.Errorf("before run 100: %v, %v", runs, err)
	}
}
