package joblog

import (
	"context"
	"io"
	"sync/atomic"
)

// Run is the log of one run of a job. It is cheap until something is written. A nil Run discards. Safe for concurrent use.
type Run struct {
	writer *Writer
	jobID  int64
	run    int32
	spool  atomic.Pointer[spool]
}

// closedUnused stands for the spool of a run that was closed before anything was written.
var closedUnused = &spool{closed: true, done: true}

// Run returns the log of a run. There must be one Run for a run.
func (w *Writer) Run(jobID int64, run int) *Run {
	return &Run{writer: w, jobID: jobID, run: int32(run)}
}

// Used tells whether something was written.
func (r *Run) Used() bool {
	if r == nil {
		return false
	}
	s := r.spool.Load()
	return s != nil && s != closedUnused
}

// Number is the run's number; 0 of a nil Run.
func (r *Run) Number() int {
	if r == nil {
		return 0
	}
	return int(r.run)
}

// Stream returns a writer to one of the run's streams: Stdout, Stderr, LogLines or Reports. It takes the bytes as they are,
// keeps none of the slices given to it, waits while the database cannot keep up (see the package), and fails with ErrClosed
// after Close. It panics if there is no such stream.
func (r *Run) Stream(kind byte) io.Writer {
	streamIndex(kind)
	if r == nil {
		return io.Discard
	}
	return stream{r, kind}
}

// Close ends the run's log, has it flushed now, and waits until it is stored. If ctx ends first, its cause is returned, and
// the rest is stored later all the same. Closing twice does no harm.
func (r *Run) Close(ctx context.Context) error {
	if r == nil {
		return nil
	}
	s := r.spool.Load()
	if s == nil && r.spool.CompareAndSwap(nil, closedUnused) {
		return nil
	}
	if s = r.spool.Load(); s == closedUnused {
		return nil
	}
	return r.writer.closeRun(ctx, s)
}

// buffers returns the run's spool, made at the first call.
func (r *Run) buffers() *spool {
	if s := r.spool.Load(); s != nil {
		return s
	}
	s := &spool{jobID: r.jobID, run: r.run, headLeft: r.writer.config.HeadBytes}
	if r.spool.CompareAndSwap(nil, s) {
		return s
	}
	return r.spool.Load()
}

// stream is one stream of a run.
type stream struct {
	run  *Run
	kind byte
}

func (s stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return s.run.writer.write(s.run.buffers(), s.kind, p)
}
