package jobs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Causes of the end of a job's context; context.Cause tells which. A cancelled job sees rivertype.ErrJobCancelledRemotely.
var (
	ErrJobTimedOut = errors.New("job timed out")
	ErrStopped     = executor.ErrStopped
	ErrJobTaken    = executor.ErrTaken
)

// runner works tasks with the client's workers.
type runner struct {
	client *Client
	kinds  map[string]kindWorker
	by     []string // the client's id, as the list of those who attempted
}

// kindWorker is a worker with what stands around it.
type kindWorker struct {
	*workerEntry
	around *jobPlugins
}

func newRunner(c *Client) *runner {
	r := &runner{client: c, kinds: map[string]kindWorker{}, by: []string{c.config.ID}}
	if c.config.Workers != nil {
		for kind, entry := range c.config.Workers.byKind {
			r.kinds[kind] = kindWorker{entry, c.plugins.forArgs(entry.args)}
		}
	}
	return r
}

// Run works one task and fills its result.
func (r *runner) Run(ctx context.Context, t *executor.Task) {
	t.StartedAt = t.Now()
	kind := r.kinds[t.Job.Kind]
	w := &work{client: r.client, task: t}
	w.row = &w.own
	r.fillRow(w.row, t)
	w.unit = kind.unit(w.row)
	t.Note = w
	ctx, cancel := context.WithCancelCause(ctx)
	t.Bind(cancel)
	w.log = r.client.logs.Run(t.ID, int(t.Run))
	ended := ending{err: errors.New("the worker ended its goroutine by runtime.Goexit")}
	defer func() {
		w.end(ctx, ended)
		cancel(nil)
	}()
	ended = w.do(workContext{ctx, w}, kind.around) //nolint:contextcheck // a context of our own around the task's
}

// logPatience is how long the end of a run waits for the rest of its log to be stored; after that it is stored later.
const logPatience = 2 * time.Second

// end stores the rest of the job's log and decides what the end of the work means.
func (w *work) end(ctx context.Context, ended ending) {
	w.closeLog(ctx)
	w.result(ctx, ended)
}

func (w *work) closeLog(ctx context.Context) {
	if w.log.Used() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), logPatience)
		defer cancel()
	}
	if err := w.log.Close(ctx); err != nil {
		w.client.log.WarnContext(ctx, "the rest of a job's log is stored later", "job_id", w.row.ID, "error", err)
	}
}

// work is one run of a job while it is worked.
type work struct {
	client *Client
	task   *executor.Task
	row    *rivertype.JobRow // own
	own    rivertype.JobRow  // kept here, so that a run makes one object less
	unit   workUnit
	log    *joblog.Run
	record recorded
	known  bool // the args were decoded
}

// ending is how the work ended.
type ending struct {
	err      error
	panicked any
	trace    string
}

// do calls the worker inside hooks and middleware, and catches its panic.
func (w *work) do(ctx context.Context, around *jobPlugins) (ended ending) {
	defer func() {
		if p := recover(); p != nil {
			ended = ending{err: fmt.Errorf("%v", p), panicked: p, trace: string(debug.Stack())}
		}
	}()
	if len(around.works) == 0 && len(around.begins) == 0 && len(around.ends) == 0 {
		if own := w.unit.middleware(); len(own) == 0 {
			return ending{err: w.plainly(ctx)}
		}
	}
	return ending{err: w.wrapped(ctx, around)}
}

// wrapped runs the work inside the client's middleware, the first one outermost, then the worker's own.
func (w *work) wrapped(ctx context.Context, around *jobPlugins) error {
	inner := func(ctx context.Context) error { return w.hooked(ctx, around) }
	for _, list := range [][]rivertype.WorkerMiddleware{w.unit.middleware(), around.works} {
		for _, m := range slices.Backward(list) {
			next := inner
			inner = func(ctx context.Context) error { return m.Work(ctx, w.row, next) }
		}
	}
	return inner(ctx)
}

// hooked runs the hooks around the work.
func (w *work) hooked(ctx context.Context, around *jobPlugins) error {
	for _, h := range around.begins {
		if err := h.WorkBegin(ctx, w.row); err != nil {
			return err
		}
	}
	err := w.plainly(ctx)
	for _, h := range around.ends {
		err = h.WorkEnd(ctx, w.row, err)
	}
	return err
}

// plainly decodes the args and calls the worker under its timeout.
func (w *work) plainly(ctx context.Context) error { //nolint:contextcheck // the timed context is made of ctx
	if err := w.unit.unmarshal(); err != nil {
		return err
	}
	w.known = true
	timeout := w.unit.timeout()
	if timeout == 0 {
		timeout = w.client.config.JobTimeout
	}
	if timeout > 0 {
		timed := newTimedContext(ctx, timeout)
		defer timed.stop()
		ctx = timed
	}
	return w.unit.work(ctx)
}

// result decides what the run's end means.
func (w *work) result(ctx context.Context, ended ending) {
	t, r := w.task, &w.task.Result
	*r = store.Result{
		JobID: t.Job.ID, Run: t.Run, Attempt: t.Attempts + 1, Outcome: state.Completed,
		StartedAt: &t.StartedAt, EndedAt: t.Now(), Line: t.Line, Priority: t.Job.Priority,
	}
	r.Output, r.Metadata = w.record.take()
	r.Carried = carried(t)
	if ended.err == nil {
		return
	}
	cause := context.Cause(ctx)
	var snooze *rivertype.JobSnoozeError
	var cancelled *rivertype.JobCancelError
	switch {
	case errors.As(ended.err, &snooze):
		w.snooze(snooze.Duration)
		return
	case errors.As(ended.err, &cancelled): // also while the client stops
	case errors.Is(cause, ErrStopped) && ended.panicked == nil:
		r.Outcome, r.Attempt = state.Returned, t.Attempts
		return
	}
	r.Error, r.Trace = cleanText(w.errorText(ended.err, cause)), cleanText(ended.trace)
	switch {
	case cancelled != nil, errors.Is(cause, rivertype.ErrJobCancelledRemotely), w.handled(ctx, ended):
		r.Outcome = state.Cancelled
	case r.Attempt >= t.Job.MaxAttempts:
		r.Outcome = state.Discarded
	default:
		r.Outcome, r.Due = state.Errored, w.retryAt()
	}
}

// timeoutError is ErrJobTimedOut with the time that was too short.
type timeoutError time.Duration

func (t timeoutError) Error() string {
	return fmt.Sprintf("%v after %v", ErrJobTimedOut, time.Duration(t))
}
func (timeoutError) Is(err error) bool { return err == ErrJobTimedOut }

// errorText puts the cause of a context's end beside the error that came of it.
func (w *work) errorText(err, cause error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("%v: %v", ErrJobTimedOut, err)
	}
	if cause != nil && errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%v: %v", cause, err)
	}
	return err.Error()
}

func (w *work) snooze(d time.Duration) {
	t, r := w.task, &w.task.Result
	r.Outcome, r.Attempt = state.Snoozed, t.Attempts
	if d > 0 {
		due := r.EndedAt.Add(d)
		r.Due = &due
	}
	r.Metadata = countSnooze(w.row.Metadata, r.Metadata)
}

// handled tells the error handler, if there is one, and whether it wants the job cancelled.
func (w *work) handled(ctx context.Context, ended ending) (cancel bool) {
	handler := w.client.config.ErrorHandler
	if handler == nil {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			w.client.log.ErrorContext(ctx, "error handler panicked", "job_id", w.row.ID, "panic", p)
			cancel = false
		}
	}()
	var says *river.ErrorHandlerResult
	if ended.panicked != nil {
		says = handler.HandlePanic(ctx, w.row, ended.panicked, ended.trace)
	} else {
		says = handler.HandleError(ctx, w.row, ended.err)
	}
	return says != nil && says.SetCancelled
}

// retryAt asks the worker, then the client's policy, when to run again, and puts the answer on the database's clock. nil: at
// once.
func (w *work) retryAt() *time.Time {
	next := w.nextRetry()
	wait := time.Until(next)
	if wait <= 0 {
		return nil
	}
	due := w.task.Now().Add(wait)
	if due.Year() > 9999 {
		due = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return &due
}

// nextRetry survives policies that panic: then the default policy counts.
func (w *work) nextRetry() (next time.Time) {
	defer func() {
		if p := recover(); p != nil {
			w.client.log.Error("retry policy panicked; the default one counts", "job_id", w.row.ID, "panic", p)
			next = (&river.DefaultClientRetryPolicy{}).NextRetry(w.row)
		}
	}()
	if w.known { // a worker may look at its args
		if next := w.unit.nextRetry(); !next.IsZero() {
			return next
		}
	}
	return w.client.config.RetryPolicy.NextRetry(w.row)
}
