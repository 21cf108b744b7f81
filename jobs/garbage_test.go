package jobs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// One job of a batch of 100 says what no text column can hold, in its error, its output and its log. The others are recorded, and
// what it said can be read.
func TestGarbageInOneOfAHundredResults(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	const garbage = "a\x00b\xffc\xed\xa0\x80d"
	b := newBlocking()
	c := config(func(ctx context.Context, job *river.Job[taskArgs]) error {
		if err := b.work(ctx, job); err != nil || job.Args.N != 42 {
			return err
		}
		jobs.Logger(ctx).InfoContext(ctx, garbage)
		if _, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte(garbage)); err != nil {
			return err
		}
		if jobs.RecordOutput(ctx, garbage) == nil {
			return errors.New("an output with a NUL was taken")
		}
		return errors.Join(jobs.RecordOutput(ctx, strings.ReplaceAll(garbage, "\x00", "")), errors.New(garbage))
	})
	c.Queues["default"] = jobs.QueueConfig{MaxWorkers: 100}
	client := start(t, pool, c)
	params := make([]river.InsertManyParams, 100)
	for i := range params {
		params[i] = river.InsertManyParams{Args: taskArgs{N: i}, InsertOpts: &river.InsertOpts{MaxAttempts: 1}}
	}
	inserted, err := client.InsertMany(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	for range params {
		<-b.began
	}
	close(b.letGo)
	for i, in := range inserted {
		if i != 42 {
			waitOutcomes(t, pool, in.Job.ID, "completed")
		}
	}
	id := inserted[42].Job.ID
	waitOutcomes(t, pool, id, "discarded")
	text := one[string](t, pool, `SELECT error FROM pelton.job_attempt WHERE job_id = $1`, id)
	output := one[string](t, pool, `SELECT coalesce(output::text, '') FROM pelton.job_attempt WHERE job_id = $1`, id)
	if !readable(text) || !readable(output) {
		t.Errorf("error %q, output %q", text, output)
	}
	var printed, logged strings.Builder
	pgtest.Eventually(t, patience, func() bool {
		printed.Reset()
		logged.Reset()
		for chunk, err := range joblog.Read(t.Context(), pool, schema.DefaultName, id, 1, joblog.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			switch chunk.Stream {
			case joblog.Stdout:
				printed.Write(chunk.Data)
			case joblog.LogLines:
				logged.Write(chunk.Data)
			}
		}
		return printed.Len() > 0 && logged.Len() > 0
	}, "the log")
	if printed.String() != garbage || !readable(logged.String()) {
		t.Errorf("printed %q, logged %q", printed.String(), logged.String())
	}
}

// readable tells whether a text can be shown, with the plain letters of the test's garbage in it.
func readable(text string) bool {
	for _, letter := range "abcd" {
		if !strings.ContainsRune(text, letter) {
			return false
		}
	}
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
