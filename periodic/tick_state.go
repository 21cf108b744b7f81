package periodic

import (
	"context"
	"fmt"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// TickState is a tick, and how its run stands.
type TickState struct {
	Tick

	State string `json:"state,omitempty"` // of its job, or the status of its flow's run; empty: it has none, or retention has dropped it
}

// TickStates reads how the runs of ticks stand, at most 10,000.
func (c *Client) TickStates(ctx context.Context, ticks []Tick) ([]TickState, error) {
	var jobIDs, runIDs []int64
	for _, t := range ticks {
		switch {
		case t.JobID != nil:
			jobIDs = append(jobIDs, *t.JobID)
		case t.RunID != nil:
			runIDs = append(runIDs, *t.RunID)
		}
	}
	jobStates, runStates := map[int64]string{}, map[int64]string{}
	if len(jobIDs) > 0 {
		page, err := c.jobs.JobList(ctx, jobs.NewJobListParams().IDs(jobIDs...).First(len(jobIDs)))
		if err != nil {
			return nil, fmt.Errorf("states of ticks: %w", err)
		}
		for _, j := range page.Jobs {
			jobStates[j.ID] = string(j.State)
		}
	}
	if len(runIDs) > 0 && c.flows != nil {
		runs, err := c.flows.Runs(ctx, flow.RunFilter{IDs: runIDs}, len(runIDs))
		if err != nil {
			return nil, fmt.Errorf("states of ticks: %w", err)
		}
		for _, r := range runs {
			runStates[r.ID] = r.Status
		}
	}
	shown := make([]TickState, len(ticks))
	for i, t := range ticks {
		shown[i].Tick = t
		switch {
		case t.JobID != nil:
			shown[i].State = jobStates[*t.JobID]
		case t.RunID != nil:
			shown[i].State = runStates[*t.RunID]
		}
	}
	return shown, nil
}
