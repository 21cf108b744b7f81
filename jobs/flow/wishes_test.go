package flow_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// What makes no sense is refused, also while what was asked before has still to be done; what has been done already is no fault.
func TestPauseAndResumeTwice(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, chain))
	refused := func(what string, err error, want string) {
		t.Helper()
		if !errors.Is(err, flow.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	run := h.start("f", flow.Options{})
	h.eventually(run, "a", "RUNNING")
	refused("resume of one that runs", h.flows.Resume(t.Context(), run), "resume run 1: the run is RUNNING, not PAUSED")
	must(t, h.flows.Pause(t.Context(), run))
	h.status(run, "PAUSED")
	must(t, h.flows.Pause(t.Context(), run))

	h.flows.Stop() // what is asked now waits
	must(t, h.flows.Resume(t.Context(), run))
	refused("a second resume", h.flows.Resume(t.Context(), run), "the run is RUNNING, not PAUSED")
	must(t, h.flows.Pause(t.Context(), run))
	must(t, h.flows.Resume(t.Context(), run))
	queued := h.start("f", flow.Options{Concurrent: flow.Queue})
	refused("pause of one that waits", h.flows.Pause(t.Context(), queued), "the run is QUEUED: only one that runs can be paused")
	behind := h.start("f", flow.Options{Concurrent: flow.Pipeline3})
	refused("pause of one that follows", h.flows.Pause(t.Context(), behind), "the run is PREPARING: only one that runs can be paused")
	fresh := h.start("f", flow.Options{})
	must(t, h.flows.Pause(t.Context(), fresh)) // it begins first
	h.flows.Start(t.Context())
	h.status(run, "RUNNING")
	h.status(fresh, "PAUSED")

	for _, id := range []int64{run, queued, behind, fresh} {
		must(t, h.flows.Kill(t.Context(), id))
	}
	h.flows.Stop()
	must(t, h.flows.Kill(t.Context(), h.start("f", flow.Options{})))
	h.flows.Start(t.Context())
	for _, id := range []int64{run, queued, behind, fresh} {
		if got := h.ended(id); !strings.HasPrefix(got, "KILLED") {
			t.Errorf("run %d: %s", id, got)
		}
	}
}

func TestKillTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	h.push(yaml(t, chain))
	run := h.start("f", flow.Options{})
	h.eventually(run, "a", "RUNNING")
	h.flows.Stop()
	must(t, h.flows.Kill(t.Context(), run))
	must(t, h.flows.Kill(t.Context(), run))
	if err := h.flows.Pause(t.Context(), run); !errors.Is(err, flow.ErrRefused) || !strings.Contains(err.Error(), "the run is being killed") {
		t.Errorf("pause of one that is being killed: %v", err)
	}
	h.flows.Start(t.Context())
	equal(t, "run", h.ended(run), "KILLED: a=KILLED b=CANCELLED c=CANCELLED")
}
