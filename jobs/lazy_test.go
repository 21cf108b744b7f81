package jobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLazyContextIsARealOne(t *testing.T) {
	t.Parallel()
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		parent := context.WithValue(t.Context(), key{}, "kept")
		for name, look := range map[string]func(ctx context.Context) error{
			"the context itself": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			"a child": func(ctx context.Context) error {
				child, cancel := context.WithCancel(ctx)
				defer cancel()
				<-child.Done()
				return child.Err()
			},
			"only Err": func(ctx context.Context) error { time.Sleep(time.Second); synctest.Wait(); return ctx.Err() }, //nolint:forbidigo // a bubble's time
		} {
			start := time.Now()
			c := timed(parent)
			if at, ok := c.Deadline(); !ok || !at.Equal(start.Add(time.Second)) || c.Value(key{}) != "kept" {
				t.Fatalf("%s: deadline %v, %v; value %v", name, at, ok, c.Value(key{}))
			}
			err := look(c)
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(context.Cause(c), ErrJobTimedOut) || time.Since(start) != time.Second {
				t.Errorf("%s: ended with %v, cause %v, after %v", name, err, context.Cause(c), time.Since(start))
			}
			c.End(nil)
		}
		never := timed(parent)
		never.End(nil)
		if err := never.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("asked for after the end, it says %v", err)
		}
		cancelled, cancel := context.WithCancelCause(parent)
		c := timed(cancelled)
		cancel(ErrStopped)
		if <-c.Done(); !errors.Is(context.Cause(c), ErrStopped) {
			t.Errorf("the parent's cause is %v here", context.Cause(c))
		}
		c.End(nil)
		plain := &lazyContext{Context: parent}
		if _, limited := plain.Deadline(); limited || plain.Err() != nil {
			t.Errorf("without a timeout it has a deadline, or has ended: %v", plain.Err())
		}
		plain.End(ErrStopped)
		plain.End(ErrJobTaken)
		early := &lazyContext{Context: parent}
		early.End(ErrStopped)
		early.End(ErrJobTaken)
		for name, c := range map[string]context.Context{"ended when asked for": plain, "ended before": early} {
			if <-c.Done(); !errors.Is(context.Cause(c), ErrStopped) {
				t.Errorf("%s: the cause is %v, want the first", name, context.Cause(c))
			}
		}
	})
}

func timed(parent context.Context) *lazyContext {
	c := &lazyContext{Context: parent}
	c.limit(time.Now(), time.Second)
	return c
}
