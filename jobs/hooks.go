package jobs

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// hook is whom to tell in this process that there is something to do for a room above this one: flows, or schedules.
type hook struct{ fn atomic.Pointer[func()] }

// set has fn called; nil: nobody.
func (h *hook) set(fn func()) {
	if fn == nil {
		h.fn.Store(nil)
		return
	}
	h.fn.Store(&fn)
}

// call tells, and whether somebody was there to be told.
func (h *hook) call() bool {
	fn := h.fn.Load()
	if fn != nil {
		(*fn)()
	}
	return fn != nil
}

// OnFlowReport has fn called when an end of a flow's job was reported, in this process or elsewhere, and when hints may have been
// missed; nil ends that. It is for package flow, which advances flows; there is one such function. fn must not block.
func (c *Client) OnFlowReport(fn func()) { c.flows.set(fn) }

// HintFlows tells whoever advances flows that there is something to do: here at once, elsewhere by NOTIFY.
func (c *Client) HintFlows(ctx context.Context) error {
	return c.hintHook(ctx, &c.flows, store.FlowHint)
}

// OnScheduleHint has fn called when a schedule is due sooner than before, here or elsewhere, and when hints may have been missed; nil ends
// that. It is for package periodic, which fires schedules; there is one such function. fn must not block.
func (c *Client) OnScheduleHint(fn func()) { c.schedules.set(fn) }

// HintSchedules tells whoever fires schedules that one is due sooner than before: here at once, elsewhere by NOTIFY.
func (c *Client) HintSchedules(ctx context.Context) error {
	return c.hintHook(ctx, &c.schedules, store.ScheduleHint)
}

// HintSchedulesTx is HintSchedules when the caller's transaction commits.
func (c *Client) HintSchedulesTx(ctx context.Context, tx pgx.Tx) error {
	if !c.hints(ctx) {
		return nil
	}
	return c.store.HintOn(ctx, tx, []string{store.ScheduleHint})
}

func (c *Client) hintHook(ctx context.Context, h *hook, payload string) error {
	if h.call() || c.config.NotifyOff {
		return nil
	}
	return c.store.Hint(ctx, []string{payload})
}
