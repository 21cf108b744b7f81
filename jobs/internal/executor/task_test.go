package executor

import (
	"context"
	"errors"
	"testing"
)

func TestEndOfATaskBeforeItIsBound(t *testing.T) {
	t.Parallel()
	var task Task
	first, second := errors.New("first"), errors.New("second")
	task.end(first)
	task.end(second)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	task.Bind(ender(cancel))
	if got := context.Cause(ctx); !errors.Is(got, first) {
		t.Errorf("the context ended by %v, want %v", got, first)
	}
}

type ender context.CancelCauseFunc

func (e ender) End(cause error) { e(cause) }
