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
	sizes, err := joblog.Sizes(ctx, pool, client.Schema(), id)
	if err != nil {
		return 0, err
	}
	row, err := client.JobGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) && len(sizes) > 0 && run == 0 {
		return sizes[len(sizes)-1].Run, nil
	}
	if slices.ContainsFunc(sizes, func(s joblog.Size) bool { return s.Run == run }) {
		return run, nil
	}
	if err != nil {
		return 0, err
	}
	runs, err := client.JobRuns(ctx, id)
	if err != nil {
		return 0, err
	}
	if run > 0 {
		next := row.FinalizedAt == nil && run == len(runs)+1 // it may be waited for
		if next && follow || slices.ContainsFunc(runs, func(r jobs.JobRun) bool { return r.Run == run }) {
			return run, nil
		}
		return 0, fmt.Errorf("run %d of job %d: %w; there were %d", run, id, rivertype.ErrNotFound, len(runs))
	}
	last, goesOn := 0, false
	for _, r := range runs {
		if r.StartedAt != nil {
			last, goesOn = r.Run, r.EndedAt == nil
		}
	}
	waits := row.FinalizedAt == nil && row.State != rivertype.JobStateRunning
	switch {
	case waits && follow && len(runs) > 0 && !goesOn:
		return runs[len(runs)-1].Run + 1, nil
	case last == 0:
		return 1, nil
	}
	return last, nil
}

// RunEnded tells whether nothing more can come from a run: it has ended, or its job is gone.
func RunEnded(ctx context.Context, client *jobs.Client, id int64, run int) (bool, error) {
	runs, err := client.JobRuns(ctx, id)
	if err != nil {
		return false, err
	}
	for _, r := range runs {
		if r.Run == run {
			return r.EndedAt != nil, nil
		}
	}
	row, err := client.JobGet(ctx, id)
	if errors.Is(err, rivertype.ErrNotFound) {
		return true, nil
	}
	return err == nil && row.FinalizedAt != nil, err
}
