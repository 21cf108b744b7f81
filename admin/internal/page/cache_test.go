package page

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One reads for all who ask for the same; who asks for something else does not wait for it, and who gives up does not take it from the others.
func TestCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := cache[string]{keep: time.Minute}
		read, goOn := 0, make(chan error)
		slow := func(ctx context.Context) (string, error) {
			read++
			err := <-goOn
			return "slow", errors.Join(err, ctx.Err())
		}
		type answer struct {
			text string
			err  error
		}
		ask := func(ctx context.Context) <-chan answer {
			answers := make(chan answer, 1)
			go func() {
				text, err := c.get(ctx, "a", slow)
				answers <- answer{text, err}
			}()
			synctest.Wait()
			return answers
		}
		gone, leave := context.WithCancel(t.Context())
		first, second, third := ask(gone), ask(t.Context()), ask(gone)
		if text, err := c.get(t.Context(), "b", func(context.Context) (string, error) { return "quick", nil }); text != "quick" || err != nil {
			t.Errorf("another key: %q, %v", text, err)
		}
		leave()
		if got := <-third; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who gave up got %v", got)
		}
		goOn <- nil
		if one, two := <-first, <-second; one != (answer{"slow", nil}) || two != one || read != 1 {
			t.Errorf("read %d times: %v, %v", read, one, two)
		}
		time.Sleep(59 * time.Second) //nolint:forbidigo // the clock is synctest's
		if got := <-ask(t.Context()); got != (answer{"slow", nil}) || read != 1 {
			t.Errorf("read %d times within a minute: %v", read, got)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // as above
		broken := errors.New("no database")
		first, second = ask(t.Context()), ask(t.Context())
		goOn <- broken
		if one, two := <-first, <-second; !errors.Is(one.err, broken) || !errors.Is(two.err, broken) || read != 2 {
			t.Errorf("read %d times: %v, %v", read, one, two)
		}
		again := ask(t.Context())
		goOn <- nil
		if got := <-again; got != (answer{"slow", nil}) || read != 3 {
			t.Errorf("read %d times after a failure: %v", read, got)
		}
	})
}

// What is made quickly takes a hundredth of the time; what is slow now is not left alone for minutes.
func TestRestAfter(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 100 * time.Millisecond, 100 * time.Millisecond: 10 * time.Second, 400 * time.Millisecond: 10 * time.Second,
		3 * time.Second: time.Minute,
	} {
		if got := restAfter(took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}
