package trace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/jobs/trace"
)

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
	caller      = "00-" + callerTrace + "-" + callerSpan + "-01"
	unsampled   = "00-" + callerTrace + "-" + callerSpan + "-00"
)

// A request's trace goes on through the enqueue, the wait, a run that fails and the next one, in another service.
func TestFromTheRequestToTheRetry(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, func(ctx context.Context, job *river.Job[taskArgs]) error {
		jobs.Logger(ctx).InfoContext(ctx, "working")
		if job.Attempt == 1 {
			return fmt.Errorf("no luck: %w", io.ErrUnexpectedEOF)
		}
		return nil
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		ctx := trace.Extract(q.Context(), q.Header.Get("traceparent"), q.Header.Get("tracestate"))
		result, err := r.client.Insert(ctx, taskArgs{}, &river.InsertOpts{Priority: 2, Metadata: []byte(`{"a": 1}`)})
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(w, result.Job.ID)
	}))
	defer server.Close()
	q, err := http.NewRequest(http.MethodPost, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("traceparent", caller)
	q.Header.Set("tracestate", "vendor=1")
	answer, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	id, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err != nil {
		t.Fatal(err)
	}

	runs := r.named("run task", 2)
	enqueue := r.named("enqueue task", 1)[0]
	waits := r.named("wait task", 2)
	if enqueue.Trace != callerTrace || enqueue.Parent != callerSpan || enqueue.Kind != "PRODUCER" || enqueue.Service != "shop" {
		t.Errorf("enqueue is %+v", enqueue)
	}
	attrs(t, enqueue, "messaging.system=pelton", "messaging.operation.type=send", "messaging.destination.name=default",
		"messaging.message.id="+string(id), "pelton.job.kind=task", "pelton.job.priority=2")
	for i, run := range runs {
		child(t, run, enqueue)
		child(t, waits[i], enqueue)
		if run.Kind != "CONSUMER" || run.Service != "works" || run.End.Before(run.Start) {
			t.Errorf("run %d is %+v", i+1, run)
		}
		if w := waits[i]; w.End.Before(w.Start) || !w.End.Equal(run.Start) {
			t.Errorf("wait %d is from %v to %v, its run starts at %v", i+1, w.Start, w.End, run.Start)
		}
		attrs(t, run, "messaging.system=pelton", "messaging.operation.type=process", "messaging.message.id="+string(id), "pelton.job.id="+string(id),
			"pelton.job.kind=task", "pelton.job.queue=default", "pelton.job.priority=2", "pelton.job.wait",
			fmt.Sprintf("pelton.job.attempt=%d", i+1), fmt.Sprintf("pelton.job.run=%d", i+1))
	}
	if !runs[0].Failed || runs[0].Error != "no luck: unexpected EOF" || !slices.Contains(runs[0].Events, "exception") {
		t.Errorf("the first run is %+v", runs[0])
	}
	attrs(t, runs[0], "pelton.outcome=errored", "error.type=*errors.errorString")
	attrs(t, runs[1], "pelton.outcome=completed")
	if runs[1].Failed || !slices.Equal(runs[1].Links, []string{runs[0].Ref()}) || len(runs[0].Links) != 0 {
		t.Errorf("the second run is %+v, its link wanted %s", runs[1], runs[0].Ref())
	}
	if runs[1].Start.Before(runs[0].End) {
		t.Errorf("the second run starts at %v, the first ends at %v", runs[1].Start, runs[0].End)
	}

	r.completed()
	job, err := r.client.JobGet(t.Context(), enqueueID(t, string(id)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"a": 1`, `"tracestate": "vendor=1"`, enqueue.ID} {
		if !strings.Contains(string(job.Metadata), want) {
			t.Errorf("metadata are %s, want %s in it", job.Metadata, want)
		}
	}
	for i, run := range runs {
		if got := r.log(job.ID, i+1); !strings.Contains(got, run.Trace) || !strings.Contains(got, run.ID) {
			t.Errorf("log of run %d is %s, want the ids %s", i+1, got, run.Ref())
		}
	}
}

func enqueueID(t *testing.T, text string) (id int64) {
	t.Helper()
	if _, err := fmt.Sscan(text, &id); err != nil {
		t.Fatal(err)
	}
	return id
}

// log is the whole log of a run.
func (r *rig) log(job int64, run int) string {
	r.t.Helper()
	var text strings.Builder
	pgtest.Eventually(r.t, patience, func() bool {
		text.Reset()
		lines := r.readLog(job, run)
		text.WriteString(lines)
		return lines != ""
	}, "the log of run %d", run)
	return text.String()
}

// Each end of a run is told apart.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	begun := make(chan int64, 1)
	r := newRig(t, trace.Config{}, func(ctx context.Context, job *river.Job[taskArgs]) error {
		again := job.Attempt > 1 || strings.Contains(string(job.Metadata), "snoozes")
		switch how := job.Tags[0]; {
		case again:
			return nil
		case how == "snooze":
			return river.JobSnooze(0)
		case how == "cancel":
			return river.JobCancel(errors.New("no use"))
		case how == "timeout":
			<-ctx.Done()
			return ctx.Err()
		case how == "panic":
			panic("oh")
		case how == "taken":
			begun <- job.ID
			<-ctx.Done()
			return ctx.Err()
		}
		return errors.New("wrong")
	})
	for _, how := range []string{"snooze", "cancel", "timeout", "panic", "taken", "discard"} {
		opts := &river.InsertOpts{Tags: []string{how}, MaxAttempts: 2}
		switch how {
		case "discard":
			opts.MaxAttempts = 1
		case "timeout":
			opts.Metadata = []byte(`{"brief":true}`)
		}
		id := r.insert(t.Context(), opts)
		if how == "taken" {
			if _, err := r.client.JobCancel(t.Context(), <-begun); err != nil {
				t.Fatal(err)
			}
		}
		r.completed()
		r.eventually("the runs of "+how, func() bool {
			for _, s := range r.spans.Named("run task") {
				if s.Attrs["pelton.job.id"] == fmt.Sprint(id) {
					return true
				}
			}
			return false
		})
		var got []string
		for _, s := range r.spans.Named("run task") {
			if s.Attrs["pelton.job.id"] == fmt.Sprint(id) {
				got = append(got, strings.TrimSpace(fmt.Sprintln(s.Attrs["pelton.outcome"], s.Attrs["error.type"], s.Failed, len(s.Links))))
			}
		}
		want := map[string][]string{
			"snooze":  {"snoozed  false 0", "completed  false 1"},
			"cancel":  {"cancelled  false 0"},
			"timeout": {"errored timeout true 0", "completed  false 1"},
			"panic":   {"errored panic true 0", "completed  false 1"},
			"taken":   {"cancelled  false 0"},
			"discard": {"discarded *errors.errorString true 0"},
		}[how]
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", how, got, want)
		}
	}
}

// A stop hands the run back, and the next one links to it.
func TestRunsThatAStopInterrupts(t *testing.T) {
	t.Parallel()
	begun := make(chan bool, 2)
	r := newRig(t, trace.Config{}, func(ctx context.Context, job *river.Job[taskArgs]) error {
		begun <- true
		if strings.Contains(string(job.Metadata), "trace_run") {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	})
	r.insert(t.Context(), nil)
	<-begun
	if err := r.worker.StopAndCancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := r.named("run task", 1)[0]
	attrs(t, first, "pelton.outcome=returned", "pelton.job.run=1", "pelton.job.attempt=1")
	if err := r.worker.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := r.named("run task", 2)[1]
	attrs(t, second, "pelton.outcome=completed", "pelton.job.run=2", "pelton.job.attempt=1")
	if first.Failed || !slices.Equal(second.Links, []string{first.Ref()}) {
		t.Errorf("the second run has links %v, want %s", second.Links, first.Ref())
	}
}

func done(context.Context, *river.Job[taskArgs]) error { return nil }

// One insert is one span. Few of its jobs are its children, many begin traces of their own with a link.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	many := func(n int) (params []river.InsertManyParams) {
		for range n {
			params = append(params, river.InsertManyParams{Args: taskArgs{}})
		}
		return params
	}
	if _, err := r.client.InsertMany(t.Context(), append(many(2), river.InsertManyParams{Args: otherArgs{}})); err != nil {
		t.Fatal(err)
	}
	few := r.named("enqueue", 1)[0]
	attrs(t, few, "messaging.batch.message_count=3")
	for _, run := range r.named("run task", 2) {
		child(t, run, few)
	}
	if n, err := r.client.InsertManyFast(t.Context(), many(101)); n != 101 || err != nil {
		t.Fatal(n, err)
	}
	batch := r.named("enqueue task", 1)[0]
	attrs(t, batch, "messaging.batch.message_count=101", "pelton.job.kind=task")
	traces := map[string]bool{}
	for _, run := range r.named("run task", 103)[2:] {
		traces[run.Trace] = true
		if run.Parent != "" || !slices.Equal(run.Links, []string{batch.Ref()}) {
			t.Fatalf("a run of many is %+v, want a root with a link to %s", run, batch.Ref())
		}
	}
	if len(traces) != 101 || traces[batch.Trace] {
		t.Errorf("%d traces of 101 jobs", len(traces))
	}
}

// What is rolled back leaves the span of the enqueue, and no run.
func TestInsertTx(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	ctx := trace.Extract(t.Context(), caller, "")
	for _, commit := range []bool{false, true} {
		tx, err := r.pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.client.InsertTx(ctx, tx, taskArgs{}, nil); err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(ctx)
		} else {
			err = tx.Rollback(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := r.named("run task", 1)[0]
	enqueues := r.named("enqueue task", 2)
	child(t, run, enqueues[1])
	if enqueues[0].Trace != callerTrace || enqueues[1].Trace != callerTrace {
		t.Error("an enqueue is not in the caller's trace")
	}
}

// With a ratio of none there is nothing, neither spans nor metadata, but for what a trace that is kept elsewhere brings along.
func TestSamplingOff(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{Ratio: -1}, done)
	for _, ctx := range []context.Context{t.Context(), trace.Extract(t.Context(), unsampled, "")} {
		if got := r.metadata(r.insert(ctx, nil)); got != "" {
			t.Errorf("metadata are %s, want none", got)
		}
	}
	if _, err := r.client.InsertManyFast(t.Context(), []river.InsertManyParams{{Args: taskArgs{}}, {Args: taskArgs{}}}); err != nil {
		t.Fatal(err)
	}
	r.completed()
	id := r.insert(trace.Extract(t.Context(), caller, ""), nil)
	run := r.named("run task", 1)[0]
	attrs(t, run, fmt.Sprintf("pelton.job.id=%d", id))
	if run.Trace != callerTrace || len(r.spans.Spans()) != 3 {
		t.Errorf("spans, want three of the caller's trace:\n%s", r.spans)
	}
}

// That a caller's trace is not kept holds for the jobs too, and their workers see it.
func TestUnsampledCaller(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	r := newRig(t, trace.Config{}, func(ctx context.Context, _ *river.Job[taskArgs]) error {
		parent, _ := trace.Inject(ctx)
		seen <- parent
		return nil
	})
	id := r.insert(trace.Extract(t.Context(), unsampled, ""), nil)
	if got := r.metadata(id); !regexp.MustCompile(`^\{"traceparent": "00-` + callerTrace + `-[0-9a-f]{16}-00"\}$`).MatchString(got) {
		t.Errorf("metadata are %s", got)
	}
	if got := <-seen; !strings.HasPrefix(got, "00-"+callerTrace) || !strings.HasSuffix(got, "-00") {
		t.Errorf("the worker is in %s", got)
	}
	r.completed()
	if err := errors.Join(r.shop.Flush(t.Context()), r.works.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	if spans := r.spans.Spans(); len(spans) != 0 {
		t.Errorf("spans:\n%s", r.spans)
	}
}

// Of an insert that nobody keeps, many jobs need no link to it: they carry nothing, and begin traces of their own.
func TestManyJobsOfAnUnsampledCaller(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	params := make([]river.InsertManyParams, 101)
	for i := range params {
		params[i].Args = taskArgs{}
	}
	if _, err := r.client.InsertManyFast(trace.Extract(t.Context(), unsampled, ""), params); err != nil {
		t.Fatal(err)
	}
	for _, run := range r.named("run task", len(params)) {
		if run.Parent != "" || len(run.Links) > 0 || run.Trace == callerTrace {
			t.Fatalf("a run of many is %+v, want a root without links", run)
		}
	}
	var carry int
	if err := r.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.job WHERE metadata IS NOT NULL`).Scan(&carry); err != nil || carry > 0 {
		t.Errorf("%d jobs have metadata, %v", carry, err)
	}
}

// A trace that is given by hand is kept, and metadata stay what they are.
func TestMetadataOfUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	given := `{"x": [1, {"traceparent": 2}], "traceparent": "` + caller + `"}`
	id := r.insert(t.Context(), &river.InsertOpts{Metadata: []byte(given)})
	if got := r.metadata(id); got != given {
		t.Errorf("metadata are %s, want %s", got, given)
	}
	if run := r.named("run task", 1)[0]; run.Trace != callerTrace || run.Parent != callerSpan {
		t.Errorf("the run is in %s/%s", run.Trace, run.Parent)
	}
	if n := len(r.spans.Named("enqueue task")); n != 0 {
		t.Errorf("%d spans of an enqueue whose job has a trace", n)
	}
	for _, odd := range []string{`{"traceparent": 7}`, `{"traceparent": "x", "tracestate": {}}`, ` {} `, `{"pelton:trace_run": []}`} {
		r.insert(t.Context(), &river.InsertOpts{Metadata: []byte(odd)})
	}
	r.named("run task", 5)
	for _, wrong := range []string{`[]`, `{`, `{}{}`, `"trace"`, `{"a":}`} {
		if _, err := r.client.Insert(t.Context(), taskArgs{}, &river.InsertOpts{Metadata: []byte(wrong)}); err == nil {
			t.Errorf("metadata %s were taken", wrong)
		}
	}
	large := `{"x": "` + strings.Repeat("x", jobs.MaxArgsBytes-9) + `"}`
	if got := r.metadata(r.insert(t.Context(), &river.InsertOpts{Metadata: []byte(large)})); got != large {
		t.Errorf("%d bytes of metadata became %d", len(large), len(got))
	}
}

// A job that a process without traces enqueued begins a trace with its run.
func TestJobsWithoutATrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	if _, err := r.pool.Exec(t.Context(), `SELECT pelton.enqueue('task', '{}')`); err != nil {
		t.Fatal(err)
	}
	if run := r.named("run task", 1)[0]; run.Parent != "" || len(r.spans.Spans()) != 1 {
		t.Errorf("spans:\n%s", r.spans)
	}
}

// Unique jobs: the span says that nothing was enqueued.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	unique := &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}, ScheduledAt: time.Now().Add(time.Hour)}
	first, second := r.insert(t.Context(), unique), r.insert(t.Context(), unique)
	spans := r.named("enqueue task", 2)
	attrs(t, spans[1], "pelton.job.duplicate=true", fmt.Sprintf("messaging.message.id=%d", first))
	if first != second || spans[0].Attrs["pelton.job.duplicate"] != "" {
		t.Errorf("jobs %d and %d, the first is %+v", first, second, spans[0])
	}
}

// The programs of command jobs know the trace.
func TestProgramsKnowTheTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, trace.Config{}, done)
	args := jobs.RawArgs{JobKind: "command", JSON: []byte(`{"command":"printenv TRACEPARENT TRACESTATE"}`)}
	result, err := r.client.Insert(trace.Extract(t.Context(), caller, "a=b"), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := r.named("run command", 1)[0]
	if got, want := r.log(result.Job.ID, 1), "00-"+callerTrace+"-"+run.ID+"-01\na=b\n"; got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}
}

func (r *rig) readLog(job int64, run int) string {
	r.t.Helper()
	var b strings.Builder
	if err := joblog.Copy(&b, joblog.Read(r.t.Context(), r.pool, "pelton", job, run, joblog.Options{})); err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

// counting counts records.
type counting struct {
	slog.Handler
	n *atomic.Int32
}

func (c counting) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

// A collector that is away, or refuses, holds up no job and is told of once in a minute. What comes later is sent when it is there again.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	var warnings atomic.Int32
	log := slog.New(counting{slog.Default().Handler(), &warnings})
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	r := newRig(t, trace.Config{Logger: log}, done)
	away := r.tracer("away", trace.Config{Endpoint: nobody.URL + "/v1/traces", Logger: log})
	client, err := jobs.NewClient(r.pool, &jobs.Config{Middleware: away.Middleware(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r.spans.Fail(true)
	for range 3 {
		if _, err := client.Insert(t.Context(), taskArgs{}, nil); err != nil {
			t.Fatal(err)
		}
		r.insert(t.Context(), nil)
		r.completed()
		for _, tracer := range []*trace.Tracer{away, r.shop, r.works} {
			if err := tracer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := warnings.Load(); n != 3 { // one of each tracer
		t.Errorf("%d warnings, want 3", n)
	}
	r.spans.Fail(false)
	id := r.insert(t.Context(), nil)
	attrs(t, r.named("run task", 1)[0], fmt.Sprintf("pelton.job.id=%d", id))
}

// What W3C allows is read, and nothing else.
func TestTraceparents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		caller:                                 caller,
		unsampled:                              unsampled,
		"01" + caller[2:] + "-more":            caller,
		caller[:len(caller)-2] + "03":          caller,
		"":                                     "",
		"00":                                   "",
		caller + "-more":                       "",
		"01" + caller[2:] + "more":             "",
		"ff" + caller[2:]:                      "",
		strings.ToUpper(caller):                "",
		strings.Replace(caller, "-b", "xb", 1): "",
		"00-" + strings.Repeat("0", 32) + "-" + callerSpan + "-01":  "",
		"00-" + callerTrace + "-" + strings.Repeat("0", 16) + "-01": "",
		caller[:len(caller)-2] + "0x":                               "",
	} {
		if got, _ := trace.Inject(trace.Extract(t.Context(), text, "a=1")); got != want {
			t.Errorf("%q was read as %q, want %q", text, got, want)
		}
	}
	for state, want := range map[string]string{"a=1,b=2": "a=1,b=2", "": "", "=": ""} {
		if parent, got := trace.Inject(trace.Extract(t.Context(), caller, state)); parent != caller || got != want {
			t.Errorf("state %q was read as %q of %q", state, got, parent)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]trace.Config{
		"want one of Provider, Exporter and Endpoint": {},
		"ratio is 2, want above 0 up to 1":            {Endpoint: "http://127.0.0.1", Ratio: 2},
		"ratio is NaN, want":                          {Endpoint: "http://127.0.0.1", Ratio: math.NaN()},
	} {
		if _, err := trace.New(t.Context(), config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", config, err, want)
		}
	}
}

// Records of a context in a trace have its ids.
func TestHandler(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log := slog.New(trace.NewHandler(slog.NewTextHandler(&b, nil))).With("a", 1)
	log.InfoContext(t.Context(), "without")
	log.InfoContext(trace.Extract(t.Context(), caller, ""), "with")
	lines := strings.Split(b.String(), "\n")
	if strings.Contains(lines[0], "trace_id") || !strings.Contains(lines[1], "a=1 trace_id="+callerTrace+" span_id="+callerSpan) {
		t.Errorf("log:\n%s", &b)
	}
}
