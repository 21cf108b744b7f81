package joblog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/service"
)

const (
	maxBatchRows   = 2000
	minRetryPause  = 100 * time.Millisecond
	maxRetryPause  = 5 * time.Second
	trimShare      = 8 // the tail may be larger than asked by this part of it before rows are deleted
	commitSettings = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $1, true)," +
		" set_config('synchronous_commit', 'off', true)"
)

// loop is the flusher: it sleeps until something is pending, lets it gather for a moment, and sends it.
func (w *Writer) loop(ctx context.Context) {
	for w.gather(ctx) {
		w.flush(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.StopTimeout)
	defer cancel()
	w.flush(last)
	w.tell()
	w.reportLoss()
}

// gather waits until it is time to flush; false: the writer stops.
func (w *Writer) gather(ctx context.Context) bool {
	select {
	case <-w.wake:
	case <-ctx.Done():
		return false
	}
	timer := time.NewTimer(w.config.FlushInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.kick:
	case <-ctx.Done():
		return false
	}
	return true
}

// flush sends what is pending, in as many batches as that takes, unless ctx ends. What is written meanwhile waits for the next
// flush, so that a talkative job does not have a statement for every few lines.
func (w *Writer) flush(ctx context.Context) {
	for more := true; more; {
		more = w.take()
		if len(w.batch) > 0 && !w.store(ctx) {
			return
		}
		w.trim(ctx)
		w.tell()
	}
}

// take fills the batch from the spools in turn, unless one is still in flight, and tells whether it had to leave some.
func (w *Writer) take() (more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.batch) > 0 {
		return true
	}
	now, room := time.Now(), w.config.FlushBytes
	for range len(w.queue) {
		s := w.queue[0]
		if room < w.config.ChunkBytes || len(w.batch) >= maxBatchRows {
			return true
		}
		w.queue[0] = nil
		w.queue = w.queue[1:]
		s.queued = false
		w.unsent += s.ripe(now, w.config)
		// A run keeps half of its allowance for what comes while the batch is in flight, however long that takes.
		room -= s.take(&w.batch, min(room, w.config.RunBytes/2), maxBatchRows-len(w.batch))
		if !s.idle() || s.closed {
			s.queued = true
			w.queue = append(w.queue, s)
		}
		more = more || len(s.pending) > 0
	}
	return more
}

// store sends the batch until it is stored; false: ctx ended first.
func (w *Writer) store(ctx context.Context) bool {
	var failing time.Time
	for pause := minRetryPause; len(w.batch) > 0; pause = min(2*pause, maxRetryPause) {
		started := time.Now()
		err := w.send(ctx, w.batch)
		switch {
		case err == nil:
			w.settle(w.batch, true)
			w.batch = nil
		case isRefusal(err):
			w.batch = w.salvage(ctx, w.batch, err)
			continue
		default:
			if failing.IsZero() {
				failing = started
				w.config.Logger.WarnContext(ctx, "storing job logs fails; trying again", "error", err)
			}
			w.setAway(time.Since(failing) >= w.config.Patience)
			w.tell()
			if !service.Sleep(ctx, pause) {
				return false
			}
		}
	}
	if !failing.IsZero() {
		w.config.Logger.InfoContext(ctx, "storing job logs works again", "after", time.Since(failing))
	}
	w.setAway(false)
	return true
}

// send makes one try to store a batch. A stop does not cut it short.
func (w *Writer) send(ctx context.Context, batch []*chunk) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.config.FlushTimeout)
	defer cancel()
	limit := fmt.Sprint(w.config.FlushTimeout.Milliseconds())
	err := pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, commitSettings, limit); err != nil {
			return err
		}
		if !w.clock.known() {
			if err := w.clock.set(tx.QueryRow(ctx, "SELECT clock_timestamp()")); err != nil {
				return err
			}
		}
		return w.clock.set(tx.QueryRow(ctx, w.sql.Get("append"), w.rows(batch).args()...))
	})
	if err != nil {
		return fmt.Errorf("store %d log chunks: %w", len(batch), err)
	}
	return nil
}

// salvage finds the chunks that the database refuses by halving, and drops them. It returns what remains to be sent because
// something else went wrong meanwhile.
func (w *Writer) salvage(ctx context.Context, batch []*chunk, refusal error) []*chunk {
	if len(batch) == 1 {
		w.config.Logger.ErrorContext(ctx, "a piece of a job's log was refused and dropped", "error", refusal,
			"job", batch[0].run.jobID, "run", batch[0].run.run, "bytes", len(batch[0].data))
		w.settle(batch, false)
		return nil
	}
	var rest []*chunk
	for _, half := range [][]*chunk{batch[:len(batch)/2], batch[len(batch)/2:]} {
		switch err := w.send(ctx, half); {
		case err == nil:
			w.settle(half, true)
		case isRefusal(err):
			rest = append(rest, w.salvage(ctx, half, err)...)
		default:
			rest = append(rest, half...)
		}
	}
	return rest
}

// settle counts chunks as stored or dropped and gives their room free.
func (w *Writer) settle(batch []*chunk, stored bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range batch {
		n := len(c.data)
		w.unsent -= n
		if stored {
			w.stats.Stored += int64(n)
			c.run.stored(c, w.config.ChunkBytes, w.config.TailBytes)
		} else {
			w.stats.Dropped += int64(n)
			c.run.landed(c)
		}
		if c.run.closed || c.run.tail.given.bytes >= w.config.TailBytes/trimShare {
			w.enqueue(c.run)
		}
	}
	w.stats.Flushes++
	w.broadcast()
}

func (w *Writer) setAway(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if away != w.away {
		w.away = away
		w.broadcast()
	}
}

// reportLoss says at a stop what could not be stored.
func (w *Writer) reportLoss() {
	if s := w.Stats(); s.Unsent > 0 {
		w.config.Logger.Error("the end of some job logs could not be stored", "bytes", s.Unsent)
	}
}
