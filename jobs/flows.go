package jobs

import (
	"context"
	"sync/atomic"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// flowHook is whom to tell in this process that flows have something to do.
type flowHook struct{ fn atomic.Pointer[func()] }

// call tells, and whether somebody was there to be told.
func (h *flowHook) call() bool {
	fn := h.fn.Load()
	if fn != nil {
		(*fn)()
	}
	return fn != nil
}

// OnFlowReport has fn called when an end of a flow's job was reported, in this process or elsewhere, and when hints may have been
// missed; nil ends that. It is for package flow, which advances flows; there is one such function. fn must not block.
func (c *Client) OnFlowReport(fn func()) {
	if fn == nil {
		c.flows.fn.Store(nil)
		return
	}
	c.flows.fn.Store(&fn)
}

// HintFlows tells whoever advances flows that there is something to do: here at once, elsewhere by NOTIFY.
func (c *Client) HintFlows(ctx context.Context) error {
	if c.flows.call() || c.config.NotifyOff {
		return nil
	}
	return c.store.Hint(ctx, []string{store.FlowHint})
}
