package pgtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// pollInterval is short because tests wait for things that take milliseconds.
const pollInterval = 5 * time.Millisecond

// Eventually waits until the condition is true and ends the test when that takes longer than the timeout. The message
// says what was waited for, as in fmt.Printf.
func Eventually(t testing.TB, timeout time.Duration, condition func() bool, message string, args ...any) {
	t.Helper()
	poll(t, timeout, func(context.Context) error {
		if condition() {
			return nil
		}
		return errors.New("the condition is not true")
	}, fmt.Sprintf(message, args...))
}

// Retry calls attempt until it returns nil and ends the test with its last error when that takes longer than the
// timeout. The context given to attempt ends at the timeout.
func Retry(t testing.TB, timeout time.Duration, attempt func(ctx context.Context) error) {
	t.Helper()
	poll(t, timeout, attempt, "success")
}

func poll(t testing.TB, timeout time.Duration, attempt func(ctx context.Context) error, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	begun := time.Now()
	var last error
	for tries := 1; ; tries++ {
		err := attempt(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err // an error after the deadline is about the deadline
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v (%d tries) for %s: %v", time.Since(begun).Round(time.Millisecond), tries, what, last)
		}
	}
}
