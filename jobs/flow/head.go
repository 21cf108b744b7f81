package flow

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/internal/service"
)

const headRefresh = 200 * time.Millisecond // between two looks at the floor while reports are taken

// head knows from where on reports are to be read: those below have been applied, and while somebody's snapshot keeps their rows in the
// table nobody reads through them. Its marker runs in a loop of its own.
type head struct {
	*floor.Tracker

	c       *Client
	marking *service.Service
	mark    chan struct{}

	taken    atomic.Int64 // reports since the marker last asked
	unlooked atomic.Bool  // some were taken since the last look below the floor

	// Of the engine's loop alone:
	refreshed, checked time.Time
}

func newHead(c *Client) *head {
	h := &head{c: c, mark: make(chan struct{}, 1), checked: time.Now()}
	h.Tracker = floor.NewTracker(c.store.Schema, floor.Reports, func(int) {
		c.log.Error("reports of flows were below the floor: please report this")
	})
	h.marking = service.New(h.runMarker)
	return h
}

// moved tells that reports were taken. May be called by anyone.
func (h *head) moved(n int) {
	h.taken.Add(int64(n))
	h.unlooked.Store(true)
	select {
	case h.mark <- struct{}{}:
	default:
	}
}

// keep reads the floor when a row was published, or while reports are taken, and looks below it about once a minute after some were.
func (h *head) keep(ctx context.Context, newest int64) error {
	now := time.Now()
	if newest != h.Newest() || h.unlooked.Load() && now.Sub(h.refreshed) >= headRefresh {
		h.refreshed = now
		if err := h.Refresh(ctx, h.c.store.Pool); err != nil {
			return err
		}
	}
	if now.Sub(h.checked) >= time.Minute && h.unlooked.Swap(false) {
		h.checked = now
		if _, err := h.CheckBelow(ctx, h.c.store.Pool); err != nil {
			return err
		}
	}
	return nil
}

// runMarker publishes the floor. While nothing is taken it rests.
func (h *head) runMarker(ctx context.Context) {
	marker := floor.NewMarker(h.c.store.Schema, floor.Reports, floor.MarkerConfig{})
	for ctx.Err() == nil {
		marker.Moved(int(h.taken.Swap(0)))
		wait, err := marker.Step(ctx, h.c.store.Pool)
		if err != nil && ctx.Err() == nil {
			h.c.log.DebugContext(ctx, "no floor of reports; trying again", "error", err)
		}
		pace := min(wait, marker.Pace())
		if service.Sleep(ctx, service.Jitter(pace)) {
			h.rest(ctx, service.Jitter(wait-pace))
		}
	}
}

// rest waits for a time, or until reports are taken.
func (h *head) rest(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-h.mark:
	case <-timer.C:
	}
}
