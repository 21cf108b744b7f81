package state_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/internal/state"
)

func TestAfterLoss(t *testing.T) {
	t.Parallel()
	const lost, returned, errored = state.Lost, state.Returned, state.Errored
	for name, c := range map[string]struct {
		past         []state.Outcome // newest first
		attempt, max int16
		want         state.Loss
	}{
		"first loss goes back at once":         {nil, 1, 25, state.Loss{Outcome: lost}},
		"a loss after an error is a first one": {[]state.Outcome{errored, lost}, 3, 25, state.Loss{Outcome: lost}},
		"second in a row waits":                {[]state.Outcome{lost}, 2, 25, state.Loss{Outcome: lost, Delay: 16 * time.Second}},
		"a run that never started is no end":   {[]state.Outcome{returned, lost}, 2, 25, state.Loss{Outcome: lost, Delay: 16 * time.Second}},
		"last attempt":                         {nil, 3, 3, state.Loss{Outcome: state.Discarded, Reason: "exhausted"}},
		"third in a row is poison":             {[]state.Outcome{lost, lost}, 3, 25, state.Loss{Outcome: state.Discarded, Reason: "poison"}},
		"poison before exhausted":              {[]state.Outcome{lost, lost}, 3, 3, state.Loss{Outcome: state.Discarded, Reason: "poison"}},
	} {
		if got := state.AfterLoss(c.past, c.attempt, c.max, 3); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDefaultRetryIsBounded(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[int16]time.Duration{
		0: time.Second, 1: time.Second, 3: 81 * time.Second, 80: 365 * 24 * time.Hour, 32767: 365 * 24 * time.Hour,
	} {
		if got := state.DefaultRetry(attempt); got != want {
			t.Errorf("attempt %d: got %v, want %v", attempt, got, want)
		}
	}
}
