package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/otlptest"
	"github.com/peltonq/pelton/internal/pgtest"
)

const callerTrace = "0af7651916cd43dd8448eb211c80319c"

// traced launches the program with spans sent to a collector by OpenTelemetry's own variables, each within 50 ms.
func (s *shell) traced(c *otlptest.Collector, args ...string) *process {
	s.t.Helper()
	return launch(s.t, []string{
		"DATABASE_URL=" + s.url, "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_BSP_SCHEDULE_DELAY=50",
		"TRACEPARENT=00-" + callerTrace + "-b7ad6b7169203331-01", "OTEL_RESOURCE_ATTRIBUTES=who=test",
	}, args...)
}

// find waits for the spans that a test wants, at least n.
func find(t *testing.T, c *otlptest.Collector, n int, wanted func(s *otlptest.Span) bool) []*otlptest.Span {
	t.Helper()
	var found []*otlptest.Span
	defer func() {
		if t.Failed() {
			t.Logf("spans:\n%s", c)
		}
	}()
	pgtest.Eventually(t, patience, func() bool {
		found = slices.DeleteFunc(c.Spans(), func(s *otlptest.Span) bool { return !wanted(s) })
		return len(found) >= n
	}, "%d spans", n)
	return found
}

func named(name string) func(s *otlptest.Span) bool {
	return func(s *otlptest.Span) bool { return s.Name == name }
}

func isChild(t *testing.T, s, parent *otlptest.Span) {
	t.Helper()
	if s.Trace != parent.Trace || s.Parent != parent.ID {
		t.Errorf("%q is a child of %s/%s, want %q: %s", s.Name, s.Trace, s.Parent, parent.Name, parent.Ref())
	}
}

// A client, a worker and a scheduler, each a process of its own, make one trace of a job and one of a flow.
func TestTracesAcrossProcesses(t *testing.T) {
	t.Parallel()
	s, c := newShell(t), otlptest.New(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"p.project": "azkaban-flow-version: 2.0\n",
		"once.sh":   "test -d $1 && exit\nmkdir $1\nexit 1\n",
		"f.flow": `
nodes:
  - {name: a, type: command, config: {command: "printenv TRACEPARENT"}}
  - {name: b, type: command, dependsOn: [a], retry: {max: 1}, config: {command: "sh once.sh ${tried}"}}
  - {name: c, type: noop, dependsOn: [b]}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.ok("flow", "push", dir, "--project", "p")
	server := s.traced(c, append([]string{"server", "--listen=", "--json"}, quick...)...)
	worker := s.traced(c, append([]string{"worker", "--json", "--files-dir", t.TempDir()}, quick...)...)
	server.started()
	worker.started()

	enqueued := s.traced(c, "job", "enqueue", "command", "--args", `{"command":"printenv TRACEPARENT"}`, "--json")
	if code := enqueued.exit(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	id := fmt.Sprint(parseLines(t, enqueued.out.String())[0]["id"])
	enqueue := find(t, c, 1, named("enqueue command"))[0]
	run := find(t, c, 1, named("run command"))[0]
	isChild(t, run, enqueue)
	isChild(t, find(t, c, 1, named("wait command"))[0], enqueue)
	if enqueue.Trace != callerTrace || enqueue.Parent != "b7ad6b7169203331" || enqueue.Service != "pelton" || run.Attrs["pelton.job.id"] != id {
		t.Errorf("enqueue is %+v, run is %+v", enqueue, run)
	}
	s.waitState(id, "completed")
	if got, want := s.ok("job", "logs", id), "00-"+callerTrace+"-"+run.ID+"-01\n"; got != want {
		t.Errorf("the program printed %q, want %q", got, want)
	}

	flows := s.traced(c, "flow", "run", "p/f", "--wait", "--param", "tried="+filepath.Join(t.TempDir(), "tried"))
	if code := flows.exit(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	f := find(t, c, 1, named("flow p/f"))[0]
	if f.Trace != callerTrace || f.Parent != "b7ad6b7169203331" || f.Failed {
		t.Errorf("the run is %+v", f)
	}
	var before *otlptest.Span
	for _, path := range []string{"a", "b", "c"} {
		n := find(t, c, 1, named("node "+path))[0]
		isChild(t, n, f)
		if before != nil && n.Start.Before(before.End) || n.Start.Before(f.Start) || n.End.After(f.End) {
			t.Errorf("node %s is from %v to %v", path, n.Start, n.End)
		}
		before = n
		ofNode := func(s *otlptest.Span) bool {
			return strings.HasPrefix(s.Name, "run ") && s.Attrs["pelton.flow.node"] == path
		}
		switch path {
		case "a":
			one := find(t, c, 1, ofNode)[0]
			isChild(t, one, n)
			if got, want := s.ok("flow", "logs", f.Attrs["pelton.flow.run"], "a"), "00-"+callerTrace+"-"+one.ID+"-01"; !strings.Contains(got, want) {
				t.Errorf("the node printed %q, want %q", got, want)
			}
		case "b":
			runs := find(t, c, 2, ofNode)
			isChild(t, runs[0], n)
			isChild(t, runs[1], n)
			if !runs[0].Failed || runs[1].Failed || !slices.Equal(runs[1].Links, []string{runs[0].Ref()}) {
				t.Errorf("the runs of b are %+v and %+v", runs[0], runs[1])
			}
		}
	}
	for _, p := range []*process{worker, server} {
		p.signal(syscall.SIGTERM)
		if code := p.exit(); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
}

// What a schedule fires is a trace of its own, with the tick as its root.
func TestTracesOfTicks(t *testing.T) {
	t.Parallel()
	s, c := newShell(t), otlptest.New(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "f.flow": "nodes:\n  - {name: a, type: noop}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.ok("flow", "push", dir, "--project", "p")
	at := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	s.ok("schedule", "put", "job", "--at", at, "--kind", "noop")
	s.ok("schedule", "put", "flow", "--at", at, "--flow", "p/f")
	server := s.traced(c, append([]string{"server", "--worker", "--listen=", "--json"}, quick...)...)
	server.started()
	for schedule, name := range map[string]string{"job": "run noop", "flow": "flow p/f"} {
		tick := find(t, c, 1, named("tick "+schedule))[0]
		fired := find(t, c, 1, named(name))[0]
		isChild(t, fired, tick)
		if tick.Parent != "" || tick.Attrs["pelton.schedule.name"] != schedule || tick.Attrs["pelton.schedule.tick"] != at {
			t.Errorf("the tick is %+v, want one of %s", tick, at)
		}
		if fired.End.Before(tick.Start) {
			t.Errorf("what it fired ends at %v, it was at %v", fired.End, tick.Start)
		}
	}
	for _, s := range c.Spans() {
		if strings.HasPrefix(s.Name, "enqueue") {
			t.Errorf("there is a span %q beside the ticks", s.Name)
		}
	}
}

// What is enqueued, started and triggered through the API belongs to the trace of the request.
func TestTracesOfRequests(t *testing.T) {
	t.Parallel()
	s, c := newShell(t), otlptest.New(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "f.flow": "nodes:\n  - {name: a, type: noop}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.ok("flow", "push", dir, "--project", "p")
	s.ok("schedule", "put", "never", "--cron", "0 3 29 2 *", "--kind", "noop")
	server := s.traced(c, append([]string{"server", "--worker", "--listen=127.0.0.1:0", "--json"}, quick...)...)
	endpoint := as[string](t, server.started()["endpoint"])
	for i, call := range []struct{ path, body, span, run string }{
		{"jobs", `{"kind": "noop"}`, "enqueue noop", "run noop"},
		{"projects/p/flows/f/runs", `{}`, "flow p/f", "node a"},
		{"schedules/never/trigger", "", "tick never", "run noop"},
	} {
		of, parent := fmt.Sprintf("%032x", i+1), fmt.Sprintf("%016x", i+1)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/api/v1/"+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("traceparent", "00-"+of+"-"+parent+"-01")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode/100 != 2 {
			t.Fatalf("%s: %s, %v", call.path, response.Status, err)
		}
		mine := func(name string) *otlptest.Span {
			return find(t, c, 1, func(s *otlptest.Span) bool { return s.Name == name && s.Trace == of })[0]
		}
		first := mine(call.span)
		if first.Parent != parent {
			t.Errorf("%q is a child of %s, want the request's %s", first.Name, first.Parent, parent)
		}
		isChild(t, mine(call.run), first)
	}
}

// A collector that is away costs a command nothing but a warning.
func TestCommandsWithoutTheirCollector(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.try("", "job", "enqueue", "noop", "--otlp-endpoint", "http://127.0.0.1:1")
	if r.code != exitOK || !strings.Contains(r.out, "enqueued") || strings.Count(r.err, "spans cannot be exported") > 1 {
		t.Errorf("exit code %d\n%s\n%s", r.code, r.out, r.err)
	}
}

func TestTraceSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		endpoint, sample string
		env              map[string]string
		url              string
		ratio            float64
		wrong            string
	}{
		{ratio: 1},
		{endpoint: "http://c:4318", url: "http://c:4318/v1/traces", ratio: 1},
		{endpoint: "https://c/x/v1/traces", sample: "0.5", url: "https://c/x/v1/traces", ratio: 0.5},
		{endpoint: "http://c", sample: "0", env: map[string]string{"OTEL_SDK_DISABLED": "true"}, url: "http://c/v1/traces", ratio: -1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}, url: "http://c:4318/v1/traces", ratio: 1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c/t", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://d"}, url: "http://c/t", ratio: 1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, ratio: 1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "none"}, ratio: 1},
		{env: map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, ratio: 0.25},
		{env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, ratio: -1},
		{sample: "1", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, ratio: 1},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, wrong: "want http/protobuf"},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_EXPORTER": "zipkin"}, wrong: `OTEL_TRACES_EXPORTER is "zipkin"`},
		{endpoint: "c:4318", wrong: `--otlp-endpoint "c:4318": want a URL`},
		{sample: "2", wrong: `--trace-sample "2": want a part`},
		{sample: "NaN", wrong: `--trace-sample "NaN": want a part`},
	} {
		s := traceSettings{endpoint: c.endpoint, sample: c.sample}
		env := func(key string) string { return c.env[key] }
		url, err := s.url(env)
		var ratio float64
		if err == nil {
			ratio, err = s.ratio(env)
		}
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || url != c.url || ratio != c.ratio {
			t.Errorf("%+v: %q, %v, %v", c, url, ratio, err)
		}
	}
}
