package periodic_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

// SumArgs are of a job that sums up a day.
type SumArgs struct {
	Table string `json:"table"`
}

// Kind is the job's kind.
func (SumArgs) Kind() string { return "sum" }

// service is what an Example works with: schedules, and a queue whose jobs of kind sum are worked. done ends it.
func service(config *periodic.Config, work func(job *river.Job[SumArgs])) (ctx context.Context, pool *pgxpool.Pool, schedules *periodic.Client, done func()) {
	ctx = context.Background()
	s := &stage{}
	pool = schematest.Pool(s)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[SumArgs]) error {
		work(job)
		return nil
	}))
	quiet := slog.New(slog.DiscardHandler)
	queue, err := jobs.NewClient(pool, &jobs.Config{Queues: map[string]jobs.QueueConfig{"default": {MaxWorkers: 1}}, Workers: workers, Logger: quiet})
	check(err)
	config.Logger = quiet
	schedules, err = periodic.NewClient(pool, queue, nil, config)
	check(err)
	check(queue.Start(ctx))
	check(schedules.Start(ctx))
	return ctx, pool, schedules, func() {
		schedules.Stop()
		check(queue.Stop(ctx))
		s.end()
	}
}

func ignore(*river.Job[SumArgs]) {}

// day is one in New York, by the clock on the wall there.
func day(text string) time.Time {
	zone, err := time.LoadLocation("America/New_York")
	check(err)
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	check(err)
	return t
}

func check(err error) {
	if err != nil {
		panic(err)
	}
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
