package loadtest

import "testing"

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
