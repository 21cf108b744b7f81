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
	"github.com/peltonq/pelton/jobs/internal/mark"
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
	w := &work{client: r.client, task: t, started: time.Now()}
	t.StartedAt = t.At(w.started)
	kind := r.kinds[t.Job.Kind]
	w.row = &w.own
	r.fillRow(w.row, t)
	w.unit = kind.unit(w.row)
	w.mark = mark.Of(t.Job.Metadata)
	w.log = r.client.logs.Run(t.ID, int(t.Run))
	w.ctx.Context, w.ctx.work = ctx, w //nolint:fatcontext // the work is its own context's home
	t.Note = w
	t.Bind(&w.ctx)
	ended := ending{err: errGoexit}
	defer func() { //nolint:contextcheck // the work has its context
		w.end(ended)
		w.ctx.End(nil)
	}()
	ended = w.do(kind.around) //nolint:contextcheck // as above
}

var errGoexit = errors.New("the worker ended its goroutine by runtime.Goexit")

// endPatience is how long the end of a run waits for the rest of its log to be stored, after that it is stored later; and for the
// answer whether its CompleteTx has committed.
const endPatience = 2 * time.Second

// end stores the rest of the job's log and decides what the end of the work means.
func (w *work) end(ended ending) {
	if w.log.Used() {
		w.closeLog()
	} else {
		_ = w.log.Close(&w.ctx) // nothing to store
	}
	w.result(ended)
}

func (w *work) closeLog() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&w.ctx), endPatience)
	defer cancel()
	if err := w.log.Close(ctx); err != nil {
		w.client.log.WarnContext(ctx, "the rest of a job's log is stored later", "job_id", w.row.ID, "error", err)
	}
}

// work is one run of a job while it is worked.
type work struct {
	client  *Client
	task    *executor.Task
	started time.Time         // by this process's clock
	ctx     workContext       // the run's: it ends when the run is to end
	timed   lazyContext       // the worker's, under its timeout
	row     *rivertype.JobRow // own
	own     rivertype.JobRow  // kept here, so that a run makes one object less
	unit    workUnit
	log     *joblog.Run
	record  recorded
	known   bool       // the args were decoded
	mark    *mark.Mark // nil: no node of a flow
}

// ending is how the work ended.
type ending struct {
	err      error
	panicked any
	trace    string
}

// do calls the worker inside hooks and middleware, and catches its panic.
func (w *work) do(around *jobPlugins) (ended ending) {
	defer func() {
		if p := recover(); p != nil {
			ended = ending{err: fmt.Errorf("%v", p), panicked: p, trace: string(debug.Stack())}
		}
	}()
	if len(around.works) == 0 && len(around.begins) == 0 && len(around.ends) == 0 {
		if own := w.unit.middleware(); len(own) == 0 {
			return ending{err: w.plainly(&w.ctx, w.started)}
		}
	}
	return ending{err: w.wrapped(&w.ctx, around)}
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
	err := w.plainly(ctx, time.Now())
	for _, h := range around.ends {
		err = h.WorkEnd(ctx, w.row, err)
	}
	return err
}

// plainly decodes the args and calls the worker under its timeout, which counts from now. A middleware that calls it twice gets
// a second context.
func (w *work) plainly(ctx context.Context, now time.Time) error { //nolint:contextcheck // the timed context is made of ctx
	if err := w.unit.unmarshal(); err != nil {
		return err
	}
	w.known = true
	timeout := w.unit.timeout()
	if w.mark != nil && w.mark.Timeout > 0 {
		timeout = time.Duration(w.mark.Timeout * float64(time.Second))
	}
	if timeout == 0 {
		timeout = w.client.config.JobTimeout
	}
	if timeout > 0 {
		timed := &w.timed
		if timed.Context != nil {
			timed = &lazyContext{}
		}
		timed.Context = ctx
		timed.limit(now, timeout)
		defer timed.End(nil)
		ctx = timed
	}
	return w.unit.work(ctx)
}

// result decides what the run's end means.
func (w *work) result(ended ending) {
	t, r := w.task, &w.task.Result
	*r = store.Result{
		JobID: t.Job.ID, Run: t.Run, Attempt: t.Attempts + 1, Outcome: state.Completed,
		StartedAt: &t.StartedAt, EndedAt: t.Now(), Line: t.Line, Priority: t.Job.Priority,
	}
	r.Output, r.Metadata = w.record.take()
	r.Carried = carried(t)
	if w.mark != nil {
		r.FlowRun, r.FlowNode = w.mark.Run, w.mark.Node
	}
	if ended.err == nil || w.completedTx(ended.err) {
		return
	}
	cause := context.Cause(&w.ctx)
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
	case cancelled != nil, errors.Is(cause, rivertype.ErrJobCancelledRemotely), w.handled(&w.ctx, ended):
		r.Outcome = state.Cancelled
	case r.Attempt >= t.Job.MaxAttempts:
		r.Outcome = state.Discarded
	default:
		r.Outcome, r.Due = state.Errored, w.retryAt()
	}
}

// completedTx tells whether the worker's CompleteTx has committed, and takes its result; then what Work returned does not count. If
// the database does not answer, or the transaction is open, the finisher finds out.
func (w *work) completedTx(err error) bool {
	done := w.task.Completed.Load()
	if done == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(&w.ctx), endPatience)
	defer cancel()
	own, lookErr := w.client.store.Recorded(ctx, w.task.Executor, []*store.Result{done})
	if lookErr != nil || !own[done] {
		return false
	}
	w.task.Result = *done
	w.client.log.WarnContext(ctx, "a worker failed after its CompleteTx had committed: the job is completed", "job_id", w.row.ID, "error", err)
	return true
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
	if w.mark != nil && w.mark.Retry != nil {
		return time.Now().Add(w.mark.Retry.Wait(w.row.Attempt))
	}
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
