package command

import (
	"context"
	"errors"

	"github.com/peltonq/pelton/jobs"
)

// recordOutput stores the result as the run's output. Under a context that belongs to no run, in a test say, there is none.
func recordOutput(ctx context.Context, result *Result) error {
	if err := jobs.RecordOutput(ctx, result); err != nil && !errors.Is(err, jobs.ErrNotInWorker) {
		return err
	}
	return nil
}
