package loadtest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
)

// noopArgs are the arguments of the job that both engines work: small and typed, as most are.
type noopArgs struct {
	Number   int    `json:"number"`
	Customer string `json:"customer"`
}

// Kind implements river.JobArgs.
func (noopArgs) Kind() string { return "loadtest" }

// noopWorker does nothing but keep the books.
type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	tally *tally
}

// Work implements river.Worker.
func (w *noopWorker) Work(_ context.Context, job *river.Job[noopArgs]) error {
	w.tally.ran(job.Args.Number)
	return nil
}

// tally counts how often each of the jobs 0 to n-1 ran.
type tally struct {
	runs  []atomic.Uint32
	first atomic.Int64 // jobs that ran at least once
	stray atomic.Int64 // runs of jobs outside the range
	all   chan struct{}
	onRun func(number int, at time.Time) // nil: nobody wants to know
}

func newTally(n int) *tally {
	return &tally{runs: make([]atomic.Uint32, n), all: make(chan struct{})}
}

func (t *tally) ran(number int) {
	if t.onRun != nil {
		t.onRun(number, time.Now())
	}
	if number < 0 || number >= len(t.runs) {
		t.stray.Add(1)
		return
	}
	if t.runs[number].Add(1) == 1 && t.first.Add(1) == int64(len(t.runs)) {
		close(t.all)
	}
}

// repeated counts the runs beyond each job's first, and strays.
func (t *tally) repeated() int64 {
	extra := t.stray.Load()
	for i := range t.runs {
		if n := t.runs[i].Load(); n > 1 {
			extra += int64(n - 1)
		}
	}
	return extra
}
