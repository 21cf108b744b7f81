package document

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// streams of a log by what joblog calls them.
var streams = []struct {
	name string
	kind byte
}{{"stdout", joblog.Stdout}, {"stderr", joblog.Stderr}, {"log", joblog.LogLines}, {"progress", joblog.Reports}}

// Streams are the names of a log's streams.
func Streams() []string {
	var names []string
	for _, s := range streams {
		names = append(names, s.name)
	}
	return names
}

// StreamsOf are the letters, as joblog wants them, of streams by name. Names that are none say nothing.
func StreamsOf(names []string) (letters string) {
	for _, s := range streams {
		if slices.Contains(names, s.name) {
			letters += string(s.kind)
		}
	}
	return letters
}

// StreamName is the name of a stream by its letter.
func StreamName(letter string) string {
	for _, s := range streams {
		if string(s.kind) == letter {
			return s.name
		}
	}
	return letter
}

// LogSize is how much of a stream of a run there is.
type LogSize = joblog.Size

// NewLogSizes shows sizes, with the streams' names.
func NewLogSizes(sizes []joblog.Size) []LogSize {
	list := append([]LogSize{}, sizes...)
	for i := range list {
		list[i].Stream = StreamName(list[i].Stream)
	}
	return list
}

// ReadLogSizes tells how much the last 100 runs of a job that printed something printed, in order.
func ReadLogSizes(ctx context.Context, db joblog.DB, schema string, id int64) ([]LogSize, error) {
	sizes, err := ReadLogSizesOf(ctx, db, schema, []int64{id})
	return NewLogSizes(sizes[id]), err
}

// ReadLogSizesOf is ReadLogSizes of several jobs; streams have their short names. Jobs that printed nothing are left out.
func ReadLogSizesOf(ctx context.Context, db joblog.DB, schema string, ids []int64) (map[int64][]joblog.Size, error) {
	return joblog.SizesOf(ctx, db, schema, ids, runsShown)
}

// Chunk is a piece of a log. It has text, or base64 where the bytes are not valid UTF-8.
type Chunk struct {
	FlowRun int64     `json:"flow_run,omitempty" doc:"of which the job is a node"`
	Node    string    `json:"node,omitempty"`
	Job     int64     `json:"job_id"`
	Run     int       `json:"run"`
	Stream  string    `json:"stream"`
	At      time.Time `json:"at"`
	Pos     int64     `json:"pos" doc:"of its first byte in its stream"`
	Skipped int64     `json:"skipped" doc:"bytes before it that were not kept"`
	Text    *string   `json:"text,omitempty"`
	Base64  []byte    `json:"base64,omitempty"`
}

// NewChunk shows a chunk of a run of a job.
func NewChunk(job int64, run int, c joblog.Chunk) Chunk {
	chunk := Chunk{Job: job, Run: run, Stream: StreamName(string(c.Stream)), At: c.At.UTC(), Pos: c.Pos, Skipped: c.Skipped}
	if utf8.Valid(c.Data) {
		chunk.Text = new(string(c.Data))
	} else {
		chunk.Base64 = c.Data
	}
	return chunk
}

// LogRun finds the run of a job whose log is meant: run, or, if that is 0, the last that began, or, to follow a job that waits, the
// next. Logs outlive their jobs. The error is rivertype.ErrNotFound if there is no such run.
func LogRun(ctx context.Context, pool *pgxpool.Pool, client *jobs.Client, id int64, run int, follow bool) (int, error) {
	before := int64(joblog.AnyRun)
	if run > 0 {
		before = int64(run) + 1
	}
	logged, err := joblog.SizesBefore(ctx, pool, client.Schema(), id, before, 1)
	if err != nil {
		return 0, err
	}
	if run > 0 && len(logged) > 0 && logged[0].Run == run {
		return run, nil
	}
	row, err := client.JobGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) && run == 0 && len(logged) > 0 {
		return logged[0].Run, nil
	}
	if err != nil {
		return 0, err
	}
	newest, _, err := client.JobRunsPart(ctx, id, jobs.JobRunsParams{Limit: 1})
	if err != nil {
		return 0, err
	}
	count, goesOn := 0, false // runs are numbered from 1 on
	if len(newest) > 0 {
		count, goesOn = newest[0].Run, newest[0].EndedAt == nil
	}
	if run > 0 {
		next := row.FinalizedAt == nil && run == count+1 // it may be waited for
		if next && follow || run <= count {
			return run, nil
		}
		return 0, fmt.Errorf("run %d of job %d: %w; there were %d", run, id, rivertype.ErrNotFound, count)
	}
	waits := row.FinalizedAt == nil && row.State != rivertype.JobStateRunning
	if waits && follow && count > 0 && !goesOn {
		return count + 1, nil
	}
	return lastBegun(ctx, client, id, count)
}

// lastBegun is the last run of a job that began, of count; 1 if none did. Those that did not are few: people ended them.
func lastBegun(ctx context.Context, client *jobs.Client, id int64, count int) (int, error) {
	for before, more := count+1, true; more; {
		var runs []jobs.JobRun
		var err error
		if runs, more, err = client.JobRunsPart(ctx, id, jobs.JobRunsParams{Before: before, Limit: 20}); err != nil {
			return 0, err
		}
		for _, r := range runs {
			if before = r.Run; r.StartedAt != nil {
				return r.Run, nil
			}
		}
	}
	return 1, nil
}
