package loadtest

import (
	"testing"
	"time"
)

// A round with viewers is compared with the rounds beside it, so that what grows by itself is not theirs; pieces of searches and downloads are no pages.
func TestPagesReport(t *testing.T) {
	t.Parallel()
	second := func(server, postgres int) spentBy {
		return spentBy{time.Duration(server) * time.Second, time.Duration(postgres) * time.Second}
	}
	load := loadOf([]spentBy{second(10, 10), second(20, 10), second(30, 10), second(40, 10)}, []spentBy{second(16, 12), second(27, 13), second(36, 20)}, 100*time.Second)
	if want := (ViewersLoad{Rounds: 3, Alone: 35, Median: 5, Least: 3, Most: 11, Server: 1, Postgres: 3}); load != want {
		t.Errorf("%+v, want %+v", load, want)
	}
	var r PagesReport
	r.split([]PageTime{
		{Page: "/jobs?after&further", Median: 400},
		{Page: "/runs/*/logs?after&further&looked&q", Median: 410},
		{Page: "/jobs?kind", Median: 2},
		{Page: "/", Median: 3},
		{Page: "/jobs/*/log/download?run", Median: 600},
	})
	if len(r.Pieces) != 2 || r.Pieces[1].Median != 400 || len(r.Pages) != 2 || r.Pages[0].Page != "/" || len(r.Downloads) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "/", "/jobs/123": "/jobs/*", "/jobs/123/log?run=1&after=": "/jobs/*/log?run", "/jobs?queue=queue-3&state=completed": "/jobs?queue&state",
		"/api/v1/jobs": "/api/v1/jobs", "/flows/large/large": "/flows/*/*", "/schedules/schedule-7/edit": "/schedules/*/edit",
	} {
		if got := kindOf(path); got != want {
			t.Errorf("%s is of kind %s, want %s", path, got, want)
		}
	}
}

func TestPagesRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Pages(t.Context(), PagesConfig{Finished: 5, Reads: 1}, nil); err == nil {
		t.Error("too few jobs, and no server, were taken")
	}
}
