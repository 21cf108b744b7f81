package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
)

// NewJob is a checked job on its way in.
type NewJob struct {
	Kind         string
	Args         []byte
	Queue        string
	Priority     int16
	MaxAttempts  int16
	Due          *time.Time
	Pending      bool
	Metadata     []byte // nil: {}
	Tags         []string
	UniqueKey    []byte
	UniqueStates int16
}

// Inserted tells what became of a new job.
type Inserted struct {
	ID        int64 // of the job that holds the unique key if Skipped
	CreatedAt time.Time
	State     string
	Skipped   bool
}

// Insert puts jobs in by one call of insert_jobs, in db's transaction if it is one, alone on the pool. hint: wake sleepers.
func (s *Store) Insert(ctx context.Context, db DB, jobs []NewJob, hint bool) ([]Inserted, error) {
	rows, err := db.Query(ctx, s.sql.Get("insert"), append(columns(jobs), hint, db == DB(s.Pool))...)
	if err != nil {
		return nil, fmt.Errorf("insert jobs: %w", err)
	}
	in, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Inserted])
	if err != nil {
		return nil, fmt.Errorf("insert jobs: %w", err)
	}
	return in, nil
}

// columns turns jobs into the arrays of insert_jobs; an array nobody uses is NULL.
func columns(jobs []NewJob) []any {
	n := len(jobs)
	var (
		kinds       = make([]string, n)
		args        = make([]string, n)
		queues      = make([]string, n)
		priorities  = make([]int16, n)
		maxAttempts = make([]int16, n)
		due         []*time.Time
		pending     []bool
		metadata    []*string
		tags        []*string
		keys        [][]byte
		states      []int16
	)
	for i := range jobs {
		j := &jobs[i]
		kinds[i], args[i], queues[i] = j.Kind, text(j.Args), j.Queue
		priorities[i], maxAttempts[i] = j.Priority, j.MaxAttempts
		if j.Due != nil {
			*at(&due, i, n) = j.Due
		}
		if j.Pending {
			*at(&pending, i, n) = true
		}
		if j.Metadata != nil {
			m := text(j.Metadata)
			*at(&metadata, i, n) = &m
		}
		if len(j.Tags) > 0 {
			t := strings.Join(j.Tags, ",")
			*at(&tags, i, n) = &t
		}
		if j.UniqueKey != nil {
			*at(&keys, i, n) = j.UniqueKey
			*at(&states, i, n) = j.UniqueStates
		}
	}
	return []any{kinds, args, queues, priorities, maxAttempts, due, pending, metadata, tags, keys, states}
}

// at returns the place of i in a column that is made when it is first needed.
func at[T any](column *[]T, i, n int) *T {
	if *column == nil {
		*column = make([]T, n)
	}
	return &(*column)[i]
}

// text views bytes that nobody changes as a string.
func text(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
