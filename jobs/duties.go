package jobs

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/notifier"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
)

// newDuties makes the scheduler's part.
func (c *Client) newDuties() *duty.Set {
	var leaves sync.Once
	keeper := sync.OnceValues(c.Keeper)
	return duty.New(c.store, duty.Config{
		Log:       c.log,
		Process:   c.config.ID,
		Stepped:   c.config.Observer.DutyStepped,
		Lease:     c.config.Lease,
		LostLimit: c.config.LostLimit,
		MoveLook:  c.config.moveLook,
		NotifyOff: c.config.NotifyOff,
		NoteEvery: c.config.noteEvery,
		Reaped:    c.reaped,
		BelowMark: c.belowMark,
		Keep: func(ctx context.Context) error {
			k, err := keeper()
			if err != nil {
				return err
			}
			err = c.keep(ctx, k)
			if errors.Is(err, schema.ErrNotOwner) { // it may be meant so: the rest goes on, and nothing fails
				leaves.Do(func() {
					c.log.WarnContext(ctx, "partitions are left to their owner: make this role a member of it, or run `pelton partitions maintain` as the owner once a day",
						"error", err)
				})
				return nil
			}
			return err
		},
	})
}

// Keeper makes what keeps this client's partitions, with its retention: for a person who wants to see them, or to have them kept now.
func (c *Client) Keeper() (*schema.Keeper, error) {
	return schema.NewKeeper(c.pool, c.config.Schema, schema.KeeperConfig{Retention: c.config.Retention})
}

// keep maintains the partitions, and says what hinders that.
func (c *Client) keep(ctx context.Context, keeper *schema.Keeper) error {
	report, err := keeper.Maintain(ctx)
	for _, p := range report.Postponed {
		c.log.WarnContext(ctx, "partition maintenance is held up", "step", p.String())
	}
	if len(report.Kept) > 0 {
		c.log.WarnContext(ctx, "partitions past their retention stay for now: too many of their jobs must be kept", "partitions", report.Kept)
	}
	if len(report.Orphans) > 0 {
		c.log.WarnContext(ctx, "tables that look like partitions are attached to nothing, and hold rows: save what is needed and drop them",
			"tables", report.Orphans)
	}
	return err
}

func (c *Client) reaped(lost, discarded int) {
	c.log.Info("runs of a dead process were ended", "lost", lost, "discarded", discarded)
	c.config.Observer.Reaped(lost, discarded)
}

func (c *Client) belowMark(relation string, n int) {
	c.log.Error("rows found below a low-water mark; please report this", "table", relation, "keys", n)
	c.config.Observer.BelowMark(relation, n)
}

// newNotifier makes the listener for hints.
func (c *Client) newNotifier() *notifier.Notifier {
	return notifier.New(c.pool, notifier.Config{
		Channel: sqlfile.WakeChannel(c.config.Schema), Log: c.log, Hint: c.hinted, Connected: c.connected,
		Broken: func() { c.config.Observer.Listening(false) },
	})
}

// connected looks once, because hints may have been missed.
func (c *Client) connected() {
	c.config.Observer.Listening(true)
	c.executor.WakeAll()
	c.flows.call()
	c.schedules.call()
	if c.duties != nil {
		c.duties.LookDue()
	}
}

// hinted passes a hint on: a line with work, a running job that was cancelled, a queue that was paused or resumed, or a job
// that is due soon. Queues' names have no colon.
func (c *Client) hinted(payload string) {
	kind := "line"
	switch what, rest, tagged := strings.Cut(payload, ":"); {
	case tagged && what == "cancel":
		kind = what
		if id, err := strconv.ParseInt(rest, 10, 64); err == nil {
			c.executor.Cancel(id)
		}
	case tagged && what == "queue":
		kind = what
		c.executor.BeatNow()
	case payload == store.FlowHint:
		kind = what
		c.flows.call()
	case payload == store.ScheduleHint:
		kind = what
		c.schedules.call()
	case payload == store.DueHint:
		kind = what
		if c.duties != nil {
			c.duties.HintDue()
		}
	default:
		c.executor.Wake(payload)
		if c.duties != nil {
			c.duties.LookDue() // it may be of a job that is scheduled for soon
		}
	}
	c.config.Observer.Hinted(kind)
}

// claimed tells the observer, and the marker that the line moves.
func (c *Client) claimed(queue string, n int, took time.Duration) {
	if n > 0 && c.duties != nil {
		c.duties.HintBusy()
	}
	c.config.Observer.Claimed(queue, n, took)
}

// hintRetries tells the mover of runs that wait for a retry.
func (c *Client) hintRetries(tasks []*executor.Task) {
	if c.duties == nil {
		return
	}
	for _, t := range tasks {
		if t.Result.Due != nil {
			c.duties.HintDue()
			return
		}
	}
}

// hintScheduled tells the mover of jobs that are inserted for later.
func (c *Client) hintScheduled(prepared []*rivertype.JobInsertParams) {
	if c.duties == nil {
		return
	}
	for _, p := range prepared {
		if p.ScheduledAt != nil {
			c.duties.HintDue()
			return
		}
	}
}
