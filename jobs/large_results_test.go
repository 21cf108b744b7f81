package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// Workers record outputs, log messages and errors of 1, 10 and 100 MB. An output over the limit is refused while the worker can
// still do something about it, an error is cut, a log keeps its two ends, and the neighbours are recorded meanwhile.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	message := 10 << 20
	if pgtest.FullSize() {
		message = 100 << 20
	}
	sizes := []int{1 << 20, 10 << 20, 100 << 20}
	client := start(t, pool, config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if job.Args.N == 0 {
			return nil
		}
		if err := jobs.RecordOutput(ctx, strings.Repeat("x", jobs.MaxArgsBytes-2)); err != nil { // two quotes more
			return fmt.Errorf("at the limit: %w", err)
		}
		text := strings.Repeat("x", job.Args.N)
		if job.Args.N <= message {
			jobs.Logger(ctx).InfoContext(ctx, "large", "text", text)
		}
		err := jobs.RecordOutput(ctx, text)
		if err == nil || !strings.Contains(err.Error(), "over the limit of 1048576") || len(err.Error()) > 400 {
			return river.JobCancel(fmt.Errorf("an output of %d bytes: %w", len(text), err))
		}
		return errors.New("begins here: " + text)
	}))
	var ids []int64
	for _, size := range sizes {
		ids = append(ids, insert(t, client, size, &river.InsertOpts{MaxAttempts: 1}))
	}
	for range 20 {
		waitOutcomes(t, pool, insert(t, client, 0, nil), "completed")
	}
	for i, id := range ids {
		pgtest.Eventually(t, 3*patience, func() bool { return outcomes(t, pool, id) != "" }, "the job of %d bytes to end", sizes[i])
		got := outcomes(t, pool, id)
		text := one[string](t, pool, `SELECT error FROM pelton.job_attempt WHERE job_id = $1`, id)
		if got != "discarded" || !strings.HasPrefix(text, "begins here: x") || !strings.HasSuffix(text, "[cut at 64 KiB]") || len(text) > 70_000 {
			t.Errorf("the job of %d bytes ended %q; its error has %d bytes: %.200s", sizes[i], got, len(text), text)
		}
		if n := one[int](t, pool, `SELECT length(output::text) FROM pelton.job_attempt WHERE job_id = $1`, id); n != jobs.MaxArgsBytes {
			t.Errorf("the output of the job of %d bytes has %d, want the one at the limit", sizes[i], n)
		}
		if sizes[i] > message {
			continue
		}
		logged, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, id)
		if err != nil || len(logged) != 1 || logged[0].Printed < int64(sizes[i]) || logged[0].Stored < min(logged[0].Printed, 20<<20) || logged[0].Stored > 22<<20 {
			t.Errorf("the log of the job of %d bytes: %+v, %v", sizes[i], logged, err)
		}
	}
}
