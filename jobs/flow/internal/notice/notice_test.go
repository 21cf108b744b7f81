package notice_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/mailtest"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
)

func TestNoticeByMail(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	w, err := notice.NewWorker(notice.Config{SMTP: "smtp://" + mailtest.Serve(t, got), From: "pelton@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	args := notice.Args{
		To: "ops@example.org", Event: notice.FirstFailure, Project: "p", Version: 3, Flow: "f", Run: 7, Status: "FAILED_FINISHING",
		Node: "a:b", Detail: "exit code 1", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if err := w.Work(t.Context(), &river.Job[notice.Args]{Args: args}); err != nil {
		t.Fatal(err)
	}
	text := <-got
	for _, want := range []string{"ops@example.org", "Subject: p/f, run 7: node a:b failed", "exit code 1", "2026-01-02T03:04:05Z", "version 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestNoticeByWebhook(t *testing.T) {
	t.Parallel()
	fail := true
	var got notice.Args
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &got); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s of %s: %v", r.Method, body, err)
		}
		if fail {
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	w, err := notice.NewWorker(notice.Config{})
	if err != nil {
		t.Fatal(err)
	}
	job := &river.Job[notice.Args]{Args: notice.Args{To: server.URL, Event: notice.Succeeded, Run: 9, Status: "SUCCEEDED"}}
	if err := w.Work(t.Context(), job); err == nil || !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "not now") {
		t.Errorf("a webhook that fails: %v", err)
	}
	fail = false
	if err := w.Work(t.Context(), job); err != nil || got.Run != 9 || got.Event != notice.Succeeded {
		t.Errorf("got %+v (%v)", got, err)
	}
}

func TestNoticeWithoutAWay(t *testing.T) {
	t.Parallel()
	w, err := notice.NewWorker(notice.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Work(t.Context(), &river.Job[notice.Args]{Args: notice.Args{To: "a@example.org"}}); err == nil || !strings.Contains(err.Error(), "no mail server") {
		t.Errorf("mail without a server: %v", err)
	}
	for _, config := range []notice.Config{{SMTP: "host:25", From: "a@b"}, {SMTP: "smtp://", From: "a@b"}, {SMTP: "smtp://host"}, {SMTP: "http://host", From: "a@b"}} {
		if _, err := notice.NewWorker(config); err == nil {
			t.Errorf("%+v was taken", config)
		}
	}
}
