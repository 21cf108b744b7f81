package joblog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/quantity"
)

// Size says how much of one stream of a run is stored.
type Size struct {
	Run         int       `json:"run"`
	Stream      string    `json:"stream"`
	Chunks      int64     `json:"chunks"`
	Stored      int64     `json:"stored_bytes"`
	Printed     int64     `json:"printed_bytes"` // including what was not kept
	First, Last time.Time `json:"-"`
}

// Sizes lists the runs of a job that have a log, in order, with one entry per stream. A job may have run very often: see SizesBefore.
func Sizes(ctx context.Context, db DB, schema string, jobID int64) ([]Size, error) {
	sizes, err := SizesOf(ctx, db, schema, []int64{jobID}, math.MaxInt64)
	return sizes[jobID], err
}

// SizesOf is Sizes of several jobs, in one statement, of at most so many of each one's newest runs that have a log. Jobs without a log are left out.
func SizesOf(ctx context.Context, db DB, schema string, jobIDs []int64, runs int64) (map[int64][]Size, error) {
	sizes, err := sizesBefore(ctx, db, schema, jobIDs, AnyRun, runs)
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of %s: %w", quantity.Of(len(jobIDs), "job"), err)
	}
	return sizes, nil
}

// SizesBefore is Sizes of the newest runs alone, and in the other order: of at most so many that have a log and a smaller number than before.
func SizesBefore(ctx context.Context, db DB, schema string, jobID, before int64, runs int) ([]Size, error) {
	sizes, err := sizesBefore(ctx, db, schema, []int64{jobID}, before, int64(runs))
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of job %d: %w", jobID, err)
	}
	list := sizes[jobID]
	slices.SortStableFunc(list, func(a, b Size) int { return cmp.Compare(b.Run, a.Run) })
	return list, nil
}

func sizesBefore(ctx context.Context, db DB, schema string, jobIDs []int64, before, runs int64) (map[int64][]Size, error) {
	if len(jobIDs) == 0 {
		return map[int64][]Size{}, nil
	}
	lows := make([]int64, len(jobIDs))
	for i, id := range jobIDs {
		lows[i] = secondOf(id) - 1
	}
	below, err := Ceiling(ctx, db, schema)
	if err != nil {
		return nil, err
	}
	found, err := db.Query(ctx, statements(schema).Get("runs"), pgx.QueryExecModeCacheDescribe, jobIDs, lows, before, runs, slices.Min(lows), below)
	if err != nil {
		return nil, err
	}
	sizes := map[int64][]Size{}
	var job int64
	var s Size
	_, err = pgx.ForEachRow(found, []any{&job, &s.Run, &s.Stream, &s.Chunks, &s.Stored, &s.Printed, &s.First, &s.Last}, func() error {
		sizes[job] = append(sizes[job], s)
		return nil
	})
	return sizes, err
}

// AnyRun is before the number of no run.
const AnyRun = math.MaxInt64

// Ended tells whether nothing more can come from a run of a job: it has ended, or will not begin since its job has ended or is gone. Follow asks for it.
func Ended(ctx context.Context, db DB, schema string, jobID int64, run int) (bool, error) {
	found, err := db.Query(ctx, statements(schema).Get("ended"), pgx.QueryExecModeCacheDescribe, jobID, run)
	if err != nil {
		return false, fmt.Errorf("run %d of job %d: %w", run, jobID, err)
	}
	ended, err := pgx.CollectExactlyOneRow(found, pgx.RowTo[bool])
	if err != nil {
		return false, fmt.Errorf("run %d of job %d: %w", run, jobID, err)
	}
	return ended, nil
}
