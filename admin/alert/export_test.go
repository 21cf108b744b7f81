package alert

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// Evaluate evaluates once, unless somebody else does.
func (e *Evaluator) Evaluate(ctx context.Context) (bool, error) { return e.evaluate(ctx) }

// FailAt has evaluations call a function at steps decided and enqueued.
func (e *Evaluator) FailAt(do func(step string) error) { e.failpoint = do }

// Hurry sets a worker's clock, and how long it waits after a failed attempt.
func (w *Worker) Hurry(now func() time.Time, wait time.Duration) {
	w.now, w.wait = now, func(int) time.Duration { return wait }
}

// Statement is one of the statements of this package, for a schema.
func Statement(name, schema string) string { return sqlfile.Load(files, "sql", schema).Get(name) }

// JobID is the least id of jobs made at a time.
func JobID(at time.Time) int64 { return jobID(at) }

// ReadRuns sets how many runs a failure rate is made of at most.
func (e *Evaluator) ReadRuns(n int) { e.runs = n }

// Mode is how statements are sent.
const Mode = pgx.QueryExecModeCacheDescribe

// NewRule is a rule of a type with its defaults.
func NewRule(name, typ string) Rule { return newRule(name, typ) }

// ReadAtMost has each evaluation read so many rules.
func (e *Evaluator) ReadAtMost(rules int) {
	var of time.Time
	read := 0
	e.hasTime = func(began time.Time) bool {
		if !began.Equal(of) {
			of, read = began, 0
		}
		read++
		return read <= rules
	}
}
