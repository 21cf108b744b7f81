package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// exampleDatabase gives an Example a migrated database of its own; done drops it.
func exampleDatabase() (ctx context.Context, pool *pgxpool.Pool, done func()) {
	s := &stage{}
	return context.Background(), schematest.Pool(s), s.end
}

// check ends an Example that went wrong.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// inOneSlot works queue default one job at a time.
func inOneSlot(workers *jobs.Workers) *jobs.Config {
	return &jobs.Config{Queues: map[string]jobs.QueueConfig{jobs.QueueDefault: {MaxWorkers: 1}}, Workers: workers}
}

// ended waits for the next event and says how the job fared.
func ended(events <-chan *river.Event) string {
	e := <-events
	return fmt.Sprintf("%s, attempt %d of %d", e.Job.State, e.Job.Attempt, e.Job.MaxAttempts)
}

// stage stands in for the testing.TB that an Example does not have.
type stage struct {
	testing.TB
	cleanups []func()
}

func (*stage) Helper()                           {}
func (*stage) Context() context.Context          { return context.Background() }
func (*stage) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (*stage) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (*stage) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (s *stage) Cleanup(f func())                { s.cleanups = append(s.cleanups, f) }

func (s *stage) end() {
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}
