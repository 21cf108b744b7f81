package jobs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	watchEvery = 2 * time.Minute  // between two looks whether somebody has the duties
	watchAgain = 30 * time.Minute // between two warnings that nobody has
	watchLimit = 10 * time.Second // for one look
)

// Duty is one of the scheduler's duties, and how it gets on, whoever does it.
type Duty = store.Duty

// States of duties.
const (
	DutyOK      = "ok"
	DutyLate    = "late"    // nobody has done it for three minutes longer than it may rest
	DutyFailing = "failing" // a process has failed at it for a minute, and nobody does it in time
)

// Duties tells of the duties of the queue's scheduler (due jobs, dead processes, marks, partitions), by name, what their processes noted
// within the last half minute or so. Those of flows and schedules are not among them.
func (c *Client) Duties(ctx context.Context) ([]Duty, error) { return c.store.Duties(ctx, c.pool) }

// dutyWatch warns a client without duties that nobody has them.
type dutyWatch struct {
	*service.Service

	c      *Client
	every  time.Duration
	warned time.Time // zero: all was well at the last look
}

func newDutyWatch(c *Client) *dutyWatch {
	w := &dutyWatch{c: c, every: c.config.lookEvery}
	w.Service = service.New(w.run)
	return w
}

func (w *dutyWatch) run(ctx context.Context) {
	for service.Sleep(ctx, w.every) {
		w.look(ctx)
	}
}

// look says in the log when the duties are not done, now and then while they are not, and when they are again. A look that fails says nothing:
// a database that is away is told of elsewhere.
func (w *dutyWatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	duties, err := w.c.Duties(ctx)
	if err != nil {
		return
	}
	var undone []string
	for _, d := range duties {
		switch {
		case d.State == DutyFailing:
			undone = append(undone, fmt.Sprintf("%s (%s: %s)", d.Name, *d.FailedBy, *d.Error))
		case d.State != DutyOK:
			undone = append(undone, fmt.Sprintf("%s (not since %s)", d.Name, d.DoneAt.UTC().Format(time.RFC3339)))
		}
	}
	switch {
	case len(undone) == 0 && !w.warned.IsZero():
		w.warned = time.Time{}
		w.c.log.InfoContext(ctx, "the scheduler's duties are done again")
	case len(undone) > 0 && (w.warned.IsZero() || time.Since(w.warned) >= watchAgain):
		w.warned = time.Now()
		w.c.log.WarnContext(ctx, "nobody does the scheduler's duties: retries and scheduled jobs do not come due, jobs of dead processes are not put back, partitions"+
			" are not kept; start a `pelton server`, or see why the one that runs fails", "duties", strings.Join(undone, "; "))
	}
}
