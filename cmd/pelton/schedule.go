package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

func (a *app) schedule() *cobra.Command {
	return parent(&cobra.Command{Use: "schedule", Short: "Have jobs and flows started by the clock", GroupID: groupOperate},
		a.schedulePut(), a.scheduleList(), a.scheduleShow(), a.schedulePreview(), a.schedulePause(), a.scheduleResume(), a.scheduleDelete(),
		a.scheduleTrigger(), a.scheduleTicks(), a.scheduleBackfill())
}

// withSchedules is withClient with a client for schedules.
func (a *app) withSchedules(ctx context.Context, do func(ctx context.Context, schedules *periodic.Client) error) error {
	return a.withTargets(ctx, func(ctx context.Context, _ database, _ *flow.Client, schedules *periodic.Client) error {
		return do(ctx, schedules)
	})
}

// withTargets is withSchedules with the clients of what schedules start.
func (a *app) withTargets(
	ctx context.Context, do func(ctx context.Context, db database, flows *flow.Client, schedules *periodic.Client) error,
) error {
	return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, db database, flows *flow.Client) error {
		schedules, err := periodic.NewClient(db.pool, db.client, flows, &periodic.Config{Logger: a.logger(levelQuiet), SchedulerOff: true})
		if err != nil {
			return err
		}
		return scheduleError(do(ctx, db, flows, schedules))
	})
}

// scheduleError sorts errors of package periodic by exit code.
func scheduleError(err error) error {
	var invalid *periodic.InvalidScheduleError
	var backfill *periodic.InvalidBackfillError
	switch {
	case errors.Is(err, periodic.ErrOwned), errors.Is(err, periodic.ErrRefused):
		return refused(err)
	case errors.As(err, &invalid), errors.As(err, &backfill):
		return usage(err)
	}
	return err
}
