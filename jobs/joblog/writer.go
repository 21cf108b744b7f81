package joblog

import (
	"context"
	"embed"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// ErrClosed is returned by writes to a run that was closed, and to any run once the writer has stopped.
var ErrClosed = errors.New("the run's log is closed")

// Writer stores what the jobs of one process print. Safe for concurrent use.
type Writer struct {
	config  Config
	pool    *pgxpool.Pool
	sql     *sqlfile.Set
	service *service.Service

	wake chan struct{} // something is pending
	kick chan struct{} // flush now

	// Owned by the flusher.
	batch []*chunk // in flight, kept until stored
	told  Stats    // to Counted
	clock clock

	mu      sync.Mutex
	queue   []*spool      // spools to look at, in turn
	unsent  int           // bytes of all spools
	changed chan struct{} // closed and replaced when room came free or a run is done
	running bool
	stopped bool
	away    bool // the database has been away for longer than Patience
	stats   Stats
}

// Stats counts what a writer has done since it was made.
type Stats struct {
	Unsent  int   // bytes in memory now
	Stored  int64 // bytes stored
	Trimmed int64 // bytes deleted again, between a run's head and its tail
	Dropped int64 // bytes dropped because the database was away or refused them
	Flushes int64 // batches stored
}

// NewWriter makes a writer for the jobs of this process. Until Start it only buffers, and drops what does not fit.
func NewWriter(pool *pgxpool.Pool, schema string, config Config) *Writer {
	w := &Writer{
		config:  config.withDefaults(),
		pool:    pool,
		sql:     statements(schema),
		wake:    make(chan struct{}, 1),
		kick:    make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	w.service = service.New(w.loop)
	return w
}

// Start starts the flusher. It does nothing if the writer was started before.
func (w *Writer) Start(ctx context.Context) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		return
	}
	w.running = true
	w.mu.Unlock()
	w.service.Start(ctx)
}

// Stop stores what is left, for at most StopTimeout, and ends the flusher. Writes fail with ErrClosed from then on.
func (w *Writer) Stop() {
	w.mu.Lock()
	w.stopped = true
	w.broadcast()
	w.mu.Unlock()
	w.service.Stop()
	w.mu.Lock()
	w.running = false
	w.broadcast()
	w.mu.Unlock()
}

// Stats tells what the writer has done.
func (w *Writer) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	s.Unsent = w.unsent
	return s
}

// tell tells Counted what has been done since it was last told.
func (w *Writer) tell() {
	if w.config.Counted == nil {
		return
	}
	s := w.Stats()
	stored, trimmed, dropped := s.Stored-w.told.Stored, s.Trimmed-w.told.Trimmed, s.Dropped-w.told.Dropped
	if w.told = s; stored != 0 || trimmed != 0 || dropped != 0 {
		w.config.Counted(stored, trimmed, dropped)
	}
}

// write appends p to a stream of a run, waiting for room while the database takes what is sent.
func (w *Writer) write(s *spool, kind byte, p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done := 0
	for done < len(p) {
		if s.closed || w.stopped {
			return done, ErrClosed
		}
		n := min(len(p)-done, w.config.RunBytes-s.bytes, w.config.MemoryBytes-w.unsent)
		switch {
		case n > 0:
			done += w.append(s, kind, p[done:done+n])
		case w.running && !w.away:
			signal(w.kick)
			w.wait()
		case !w.makeRoom(s):
			s.skip(kind, len(p)-done)
			w.stats.Dropped += int64(len(p) - done)
			return len(p), nil
		}
	}
	return done, nil
}

func (w *Writer) append(s *spool, kind byte, p []byte) int {
	n := s.write(kind, p, w.config.ChunkBytes, time.Now())
	w.unsent += n
	w.enqueue(s)
	if w.unsent >= w.config.FlushBytes {
		signal(w.kick)
	}
	return n
}

// makeRoom drops a chunk: of the run itself if it is at its own limit, else of the run that has most.
func (w *Writer) makeRoom(s *spool) bool {
	if s.bytes < w.config.RunBytes {
		for _, other := range w.queue {
			if other.bytes > s.bytes {
				s = other
			}
		}
	}
	n := s.dropMiddle()
	w.unsent -= n
	w.stats.Dropped += int64(n)
	return n > 0
}

// enqueue has the flusher look at a spool.
func (w *Writer) enqueue(s *spool) {
	if !s.queued {
		s.queued = true
		w.queue = append(w.queue, s)
	}
	signal(w.wake)
}

// wait lets others go on until something has changed. The caller holds the lock.
func (w *Writer) wait() {
	changed := w.changed
	w.mu.Unlock()
	<-changed
	w.mu.Lock()
}

// broadcast wakes everybody who waits. The caller holds the lock.
func (w *Writer) broadcast() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// closeRun marks a run as ended and waits until it is stored.
func (w *Writer) closeRun(ctx context.Context, s *spool) error {
	w.mu.Lock()
	s.closed = true
	w.enqueue(s)
	w.broadcast()
	w.mu.Unlock()
	signal(w.kick)
	for {
		w.mu.Lock()
		changed, done, running := w.changed, s.done, w.running
		w.mu.Unlock()
		switch {
		case done:
			return nil
		case !running:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
