package joblog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// trimming is a range of a run's tail to be deleted.
type trimming struct {
	run *spool
	segment
}

// trim deletes what the tails have given up, where that is worth a statement, and marks closed runs as done. A range that
// could not be deleted is kept for the next time; the last one of a closed run is left to retention.
func (w *Writer) trim(ctx context.Context) {
	trimmings := w.given()
	for _, t := range trimmings {
		if err := w.delete(ctx, t); err != nil {
			w.config.Logger.WarnContext(ctx, "trimming a job's log", "error", err)
			w.keepFor(t)
			continue
		}
		w.mu.Lock()
		w.stats.Trimmed += t.bytes
		w.mu.Unlock()
	}
	w.retire()
}

// given collects the ranges that are due.
func (w *Writer) given() []trimming {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []trimming
	for _, s := range w.queue {
		if n := s.tail.given.bytes; n > 0 && (n >= w.config.TailBytes/trimShare || s.closed && s.idle()) {
			due = append(due, trimming{s, s.tail.takeGiven()})
		}
	}
	return due
}

// keepFor has a failed deletion tried again with the run's next one.
func (w *Writer) keepFor(t trimming) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !t.run.closed {
		t.run.tail.giveBack(t.segment)
	}
}

// retire takes spools that need no further look off the queue.
func (w *Writer) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept, retired := w.queue[:0], false
	for _, s := range w.queue {
		switch {
		case !s.idle(), s.closed && s.tail.given.bytes > 0:
			kept = append(kept, s)
		default:
			s.queued = false
			if s.closed {
				s.done, retired = true, true
			}
		}
	}
	clear(w.queue[len(kept):])
	w.queue = kept
	if len(kept) > 0 {
		signal(w.wake)
	}
	if retired {
		w.broadcast()
	}
}

func (w *Writer) delete(ctx context.Context, t trimming) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.FlushTimeout)
	defer cancel()
	_, err := w.pool.Exec(ctx, w.sql.Get("trim"), pgx.QueryExecModeCacheDescribe, t.run.jobID, t.run.run, t.first, t.last)
	if err != nil {
		return fmt.Errorf("delete %d bytes of run %d of job %d: %w", t.bytes, t.run.run, t.run.jobID, err)
	}
	return nil
}
