package joblog

import (
	"context"
	"fmt"
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

// Sizes lists the runs of a job that have a log, in order, with one entry per stream.
func Sizes(ctx context.Context, db DB, schema string, jobID int64) ([]Size, error) {
	found, err := db.Query(ctx, statements(schema).Get("runs"), pgx.QueryExecModeCacheDescribe,
		jobID, secondOf(jobID)-1)
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of job %d: %w", jobID, err)
	}
	sizes, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (Size, error) {
		var s Size
		return s, row.Scan(&s.Run, &s.Stream, &s.Chunks, &s.Stored, &s.Printed, &s.First, &s.Last)
	})
	if err != nil {
		return nil, fmt.Errorf("sizes of the logs of job %d: %w", jobID, err)
	}
	return sizes, nil
}
