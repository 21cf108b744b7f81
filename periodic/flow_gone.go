package periodic

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/store"
)

// Stranded is a schedule that goes on and runs a flow which its project's newest version lacks: each of its ticks fails.
type Stranded struct {
	Name   string     `json:"name"`
	Flow   string     `json:"flow"`
	NextAt *time.Time `json:"next_at"` // its next tick; nil: it comes when the run before has ended
}

// String says what happens, and what can be done about it.
func (s Stranded) String() string {
	next := "its next tick"
	if s.NextAt != nil {
		next += ", at " + s.NextAt.UTC().Format(time.RFC3339) + ","
	}
	return fmt.Sprintf("schedule %s runs flow %s, which this version lacks: %s will fail. Push a version that has the flow, or change, pause or delete the schedule",
		s.Name, s.Flow, next)
}

// Stranded lists, by name, the schedules that a version of a project with these flows strands. Left out are those that are paused, that have come
// to their end, and that run a version of their own.
func (c *Client) Stranded(ctx context.Context, project string, flows []string) ([]Stranded, error) {
	return c.stranded(ctx, c.store.Pool, project, flows)
}

// StrandedInPush lists those that a push strands, in its transaction. Put it behind InPush, which pauses schedules whose triggers are gone.
func (c *Client) StrandedInPush(project string, found *[]Stranded) flow.InPush {
	return flow.InPush{Then: func(ctx context.Context, tx pgx.Tx, report *flow.PushReport) (err error) {
		*found, err = c.stranded(ctx, tx, project, report.Flows)
		return err
	}}
}

func (c *Client) stranded(ctx context.Context, db store.DB, project string, flows []string) ([]Stranded, error) {
	var found []Stranded
	active, after := false, ""
	for {
		entries, err := c.list(ctx, db, ListParams{Flow: project, Paused: &active, After: after, Limit: maxLimit})
		if err != nil {
			return nil, err
		}
		for i := range entries {
			e := &entries[i]
			if !e.Over() && e.Flow.Version == 0 && !slices.Contains(flows, e.Flow.Flow) {
				found = append(found, Stranded{Name: e.Name, Flow: e.Flow.Flow, NextAt: e.NextAt})
			}
		}
		if len(entries) < maxLimit {
			return found, nil
		}
		after = entries[len(entries)-1].Name
	}
}
