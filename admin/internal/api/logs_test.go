package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

type taskArgs struct{}

func (taskArgs) Kind() string { return "task" }

// work starts a client that works jobs of kind task.
func (s *service) work(do func(ctx context.Context) error) {
	s.t.Helper()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, _ *river.Job[taskArgs]) error { return do(ctx) }))
	client, err := jobs.NewClient(s.pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 5}}, Workers: workers, Logger: slog.New(slog.DiscardHandler), ID: "tester",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.run(client)
}

// run starts a client, until the test ends.
func (s *service) run(client *jobs.Client) {
	s.t.Helper()
	if err := client.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			s.t.Errorf("stop: %v", err)
		}
	})
}

// waitFor waits until a job has a state.
func (s *service) waitFor(id int64, state string) document.JobDetail {
	s.t.Helper()
	var job document.JobDetail
	pgtest.Eventually(s.t, patience, func() bool {
		job = do[document.JobDetail](s, access.Viewer, http.StatusOK, "GET", fmt.Sprintf("/api/v1/jobs/%d", id), nil)
		return job.State == state
	}, "job %d to be %s", id, state)
	return job
}

// Bytes come as they were printed, whole and in part.
func TestLogDownload(t *testing.T) {
	t.Parallel()
	s := start(t)
	var printed bytes.Buffer
	for i := range 40_000 {
		fmt.Fprintf(&printed, "line %d \x00\xff\xfe <script>\n", i)
	}
	s.work(func(ctx context.Context) error {
		_, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write(printed.Bytes())
		return err
	})
	id := s.enqueue(map[string]any{"kind": "task"})[0]
	job := s.waitFor(id, "completed")
	all := printed.Bytes()
	size := len(all)
	if len(job.Runs) != 1 || len(job.Logs) != 1 || job.Logs[0].Stream != "stdout" || job.Logs[0].Stored != int64(size) {
		t.Errorf("runs %+v, logs %+v", job.Runs, job.Logs)
	}
	lines := bytes.SplitAfter(all, []byte("\n"))
	path := fmt.Sprintf("/api/v1/jobs/%d/log", id)
	for _, c := range []struct {
		query, ranged string
		status        int
		want          []byte
	}{
		{"", "", 200, all},
		{"?run=1&stream=stdout", "", 200, all},
		{"?stream=stderr", "", 200, nil},
		{"?head=3", "", 200, bytes.Join(lines[:3], nil)},
		{"?tail=3", "", 200, bytes.Join(lines[len(lines)-4:], nil)},
		{"?head_bytes=70000", "", 200, all[:70000]},
		{"?tail_bytes=70000", "", 200, all[size-70000:]},
		{"", "bytes=0-0", 206, all[:1]},
		{"", "bytes=65530-65541", 206, all[65530:65542]},
		{"", "bytes=100000-", 206, all[100000:]},
		{"", "bytes=-10", 206, all[size-10:]},
		{"", fmt.Sprintf("bytes=-%d", size+10), 206, all},
		{"", fmt.Sprintf("bytes=%d-%d", size-5, size+100), 206, all[size-5:]},
		{"", "bytes=0-1,5-6", 200, all},
		{"", "lines=0-1", 200, all},
		{"", "bytes=5-1", 200, all},
	} {
		headers := []string{}
		if c.ranged != "" {
			headers = []string{"Range", c.ranged}
		}
		r := s.ask(s.tokens[access.Viewer], "GET", path+c.query, nil, headers...)
		if r.status != c.status || !bytes.Equal(r.body, c.want) {
			t.Errorf("%s %s: %d, %d bytes, want %d, %d bytes", c.query, c.ranged, r.status, len(r.body), c.status, len(c.want))
		}
		if r.header.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") ||
			(r.header.Get("Content-Range") != "") != (c.status == 206) {
			t.Errorf("%s %s: %v", c.query, c.ranged, r.header)
		}
	}
	r := s.ask(s.tokens[access.Viewer], "GET", path, nil, "Range", fmt.Sprintf("bytes=%d-", size))
	s.problemOf(r, http.StatusRequestedRangeNotSatisfiable, "range-not-satisfiable", "outside")
	if r.header.Get("Content-Range") != fmt.Sprintf("bytes */%d", size) {
		t.Errorf("%v", r.header)
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", path+"?head=1&tail=1", nil), http.StatusUnprocessableEntity, "invalid-request", "one of them")
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", path+"?run=2", nil), http.StatusNotFound, "not-found", "run 2")
	if r := s.ask(s.tokens[access.Viewer], "HEAD", path, nil); r.status != http.StatusOK || len(r.body) > 0 {
		t.Errorf("HEAD: %d, %d bytes", r.status, len(r.body))
	}
	sizes := do[page[document.LogSize]](s, access.Viewer, http.StatusOK, "GET", path+"s", nil).Items
	if len(sizes) != 1 || sizes[0].Printed != int64(size) {
		t.Errorf("%+v", sizes)
	}
}

// sent is a server-sent event.
type sent struct{ name, id, data string }

// follow reads events into a channel, which is closed at the end of the stream.
func (s *service) follow(ctx context.Context, path string, headers ...string) <-chan sent {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.tokens[access.Viewer])
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answered, err := s.client.Do(r) //nolint:bodyclose // by the goroutine below
	if err != nil {
		s.t.Fatal(err)
	}
	if answered.StatusCode != http.StatusOK || answered.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%d %v", answered.StatusCode, answered.Header)
	}
	out := make(chan sent)
	go func() {
		defer close(out)
		defer answered.Body.Close() //nolint:errcheck // only read
		var e sent
		lines := bufio.NewScanner(answered.Body)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if e.name == "" { // after a comment
					continue
				}
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
				e = sent{}
			}
		}
		if err := lines.Err(); err != nil && ctx.Err() == nil {
			out <- sent{name: "cut off", data: err.Error()}
		}
	}()
	return out
}

func TestLogFollow(t *testing.T) {
	t.Parallel()
	s := start(t)
	goOn := make(chan struct{})
	s.work(func(ctx context.Context) error {
		out := joblog.FromContext(ctx).Stream(joblog.Stdout)
		for _, text := range []string{"first\n", "second\n"} {
			if _, err := out.Write([]byte(text)); err != nil {
				return err
			}
			select {
			case <-goOn:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	id := s.enqueue(map[string]any{"kind": "task"})[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	path := fmt.Sprintf("/api/v1/jobs/%d/log/follow", id)
	all := s.follow(ctx, path)
	chunk := func(e sent) string {
		t.Helper()
		var c document.Chunk
		if err := json.Unmarshal([]byte(e.data), &c); err != nil || e.name != "chunk" || c.Text == nil || c.Job != id || c.Run != 1 {
			t.Fatalf("%+v: %v", e, err)
		}
		return *c.Text
	}
	first := <-all
	if got := chunk(first); got != "first\n" {
		t.Errorf("first: %q", got)
	}
	goOn <- struct{}{}
	later := s.follow(ctx, path, "Last-Event-ID", first.id)
	for name, stream := range map[string]<-chan sent{"all": all, "later": later} {
		if got := chunk(<-stream); got != "second\n" {
			t.Errorf("%s: %q", name, got)
		}
	}
	goOn <- struct{}{}
	for name, stream := range map[string]<-chan sent{"all": all, "later": later} {
		if e := <-stream; e.name != "end" {
			t.Errorf("%s: %+v, want the end", name, e)
		}
		if e, more := <-stream; more {
			t.Errorf("%s: %+v after the end", name, e)
		}
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", "/api/v1/jobs/7/log/follow", nil), http.StatusNotFound, "not-found", "7")
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", path, nil, "Last-Event-ID", "x"), http.StatusUnprocessableEntity, "invalid-request", "Last-Event-ID")
}

// A stream ends when who follows may not any more: by a token that is revoked, as a user who is disabled, without a role.
func TestStreamsEndWithTheRight(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.push(access.Admin, "sales")
	s.flows.Start(t.Context())
	defer s.flows.Stop()
	run := do[struct{ Run int64 }](s, access.Operator, 201, "POST", "/api/v1/projects/sales/flows/etl/runs", map[string]any{"options": map[string]any{"queue": "nobody"}}).Run
	var node int64
	pgtest.Eventually(t, patience, func() bool {
		for _, l := range do[page[struct {
			JobID int64 `json:"job_id"`
		}]](s, access.Viewer, 200, "GET", fmt.Sprintf("/api/v1/runs/%d/logs", run), nil).Items {
			node = l.JobID
		}
		return node > 0
	}, "the job of a node")
	add := func(name, project string) (token string, id int64) {
		_, err := s.access.AddUser(t.Context(), "test", access.NewUser{Name: name, Roles: []access.Grant{{Project: project, Role: access.Viewer}}})
		if err != nil {
			t.Fatal(err)
		}
		made, secret, err := s.access.AddToken(t.Context(), "test", access.NewToken{User: name, Name: "t", Role: access.Viewer})
		if err != nil {
			t.Fatal(err)
		}
		return secret, made.ID
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	job := s.enqueue(map[string]any{"kind": "task"})[0]
	ofJob, ofNode := fmt.Sprintf("/api/v1/jobs/%d/log/follow", job), fmt.Sprintf("/api/v1/runs/%d/jobs/%d/log/follow", run, node)
	stays := s.follow(t.Context(), ofJob)
	for name, c := range map[string]struct {
		project, path string
		end           func(name string, token int64)
		says          string
	}{
		"disabled": {access.Everything, ofJob, func(name string, _ int64) { must(s.access.Disable(t.Context(), "test", name)) }, "not-logged-in"},
		"revoked":  {access.Everything, ofJob, func(_ string, id int64) { must(s.access.RevokeToken(t.Context(), "test", id)) }, "not-logged-in"},
		"roleless": {access.Everything, ofJob, func(name string, _ int64) {
			must(nil, s.access.SetRole(t.Context(), "test", name, access.Grant{Project: access.Everything}))
		}, "forbidden"},
		"moved": {"sales", ofNode, func(name string, _ int64) {
			must(nil, s.access.SetRole(t.Context(), "test", name, access.Grant{Project: "other", Role: access.Viewer}))
			must(nil, s.access.SetRole(t.Context(), "test", name, access.Grant{Project: "sales"}))
		}, "not-found"},
	} {
		token, id := add(name, c.project)
		events := s.follow(t.Context(), c.path, "Authorization", "Bearer "+token)
		c.end(name, id)
		if e := <-events; e.name != "problem" || !strings.Contains(e.data, "urn:pelton:"+c.says) {
			t.Errorf("%s: %+v, want a problem %s", name, e, c.says)
		}
		if e, more := <-events; more {
			t.Errorf("%s: %+v after the end", name, e)
		}
	}
	select {
	case e := <-stays:
		t.Errorf("the stream of who may: %+v", e)
	default:
	}
}

// Nobody takes all streams of a server.
func TestStreamsOfOneUserAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	path := fmt.Sprintf("/api/v1/jobs/%d/log/follow", s.enqueue(map[string]any{"kind": "task"})[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 25 {
		s.follow(ctx, path)
	}
	token := s.tokens[access.Viewer]
	s.problemOf(s.ask(token, "GET", path, nil), http.StatusServiceUnavailable, "busy", "25 streams of yours")
	s.follow(ctx, path, "Authorization", "Bearer "+s.tokens[access.Admin])
	cancel()
	pgtest.Eventually(t, patience, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answered, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return answered.StatusCode == http.StatusOK && answered.Body.Close() == nil
	}, "a place that is free again")
}

// A server that stops ends the streams that it has, instead of waiting for them.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.enqueue(map[string]any{"kind": "task"})[0]
	events := s.follow(t.Context(), fmt.Sprintf("/api/v1/jobs/%d/log/follow", id))
	s.stop()
	if e, more := <-events; more {
		t.Errorf("%+v, want the end of the stream", e)
	}
}
