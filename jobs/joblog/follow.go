package joblog

import (
	"context"
	"iter"
	"time"

	"github.com/peltonq/pelton/internal/service"
)

const (
	minFollowPause = 100 * time.Millisecond
	maxFollowPause = 2 * time.Second
)

// Follow is Read that goes on as the run prints more: it looks again after 0.1 s, up to 2 s (Options.Pause) while nothing comes, and ends
// after the first look that was begun when ended had said that the run is over. If the executor waits for Run.Close before
// it records the end of a run, nothing is missed. When ctx ends, so does the sequence, with its cause as an error.
func Follow(ctx context.Context, db DB, schema string, jobID int64, run int, opts Options,
	ended func(ctx context.Context) (bool, error),
) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		s, err := newSource(db, schema, jobID, run, opts)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		r := reader{source: s}
		if err := r.seek(ctx); err != nil {
			yield(Chunk{}, err)
			return
		}
		r.follow(ctx, ended, limited(opts.Head, yield))
	}
}

func (r *reader) follow(ctx context.Context, ended func(context.Context) (bool, error), yield func(Chunk, error) bool) {
	longest := maxFollowPause
	if r.opts.Pause > 0 {
		longest = r.opts.Pause
	}
	for pause := minFollowPause; ; {
		last, err := ended(ctx)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		before := r.after
		if !r.all(ctx, yield) || last {
			return
		}
		if r.after != before {
			pause = minFollowPause
		}
		if !service.Sleep(ctx, pause) {
			yield(Chunk{}, context.Cause(ctx))
			return
		}
		pause = min(2*pause, longest)
	}
}
