package jobstest

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// NoneLost fails the test if a job is in no place, in two places, or about to run again although it has ended. A test that
// moved jobs calls it at its end; clients may still be working.
func NoneLost(t testing.TB, pool *pgxpool.Pool, schema string) {
	t.Helper()
	s := store.New(pool, schema)
	ctx := t.Context()
	lost, lostErr := s.LostJobs(ctx, pool, 0)
	twice, twiceErr := s.JobsTwice(ctx, pool)
	stale, staleErr := s.StaleRuns(ctx, pool)
	if err := errors.Join(lostErr, twiceErr, staleErr); err != nil {
		t.Fatal(err)
	}
	if len(lost) > 0 {
		t.Errorf("jobs in no place: %v", lost)
	}
	if len(twice) > 0 {
		t.Errorf("jobs in more than one place: %v", twice)
	}
	if len(stale) > 0 {
		t.Errorf("jobs with a run that has ended and would be handed out again: %v", stale)
	}
}
