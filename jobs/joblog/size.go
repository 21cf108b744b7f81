package joblog

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
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
	return sizes(ctx, db, schema, "runs", jobID)
}

// SizesBefore is Sizes of the newest runs alone, and in the other order: of at most so many that have a log and a smaller number than before.
func SizesBefore(ctx context.Context, db DB, schema string, jobID, before int64, runs int) ([]Size, error) {
	return sizes(ctx, db, schema, "sizes", jobID, before, runs)
}

// AnyRun is before the number of no run.
const AnyRun = math.MaxInt64

func sizes(ctx context.Context, db DB, schema, statement string, jobID int64, args ...any) ([]Size, error) {
	found, err := db.Query(ctx, statements(schema).Get(statement), append([]any{pgx.QueryExecModeCacheDescribe, jobID, secondOf(jobID) - 1}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of job %d: %w", jobID, err)
	}
	list, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (Size, error) {
		var s Size
		return s, row.Scan(&s.Run, &s.Stream, &s.Chunks, &s.Stored, &s.Printed, &s.First, &s.Last)
	})
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of job %d: %w", jobID, err)
	}
	return list, nil
}

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
