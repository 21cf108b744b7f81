package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run is one run of a job, for people.
type Run struct {
	Run        int
	Attempt    int        // counted so far, this one included if it counts
	Outcome    string     // how it ended, or "running"
	StartedAt  *time.Time // nil: never
	EndedAt    *time.Time // nil: it goes on
	NextDue    *time.Time // when the run after it was due; nil: at once, or none
	Error      string
	Trace      string
	Output     []byte // JSON; nil: none
	ExecutorID int64  // 0: ended by a person or a duty
	Executor   string // client id; empty when it is not known any more
	Host       string
}

// Runs reads all runs of a job in order.
func (s *Store) Runs(ctx context.Context, db DB, id int64) ([]Run, error) {
	return query(ctx, db, s.sql.Get("runs_of"), fmt.Sprintf("runs of job %d", id), scanRun, id)
}

// RunsBefore reads runs of a job with smaller numbers than before, the newest first, until there are limit or they take so many bytes (0: no bound), and
// tells whether more follow.
func (s *Store) RunsBefore(ctx context.Context, db DB, id, before int64, limit, bytes int) (runs []Run, more bool, err error) {
	runs, more, err = part(limit, bytes, scanRun, func(last *Run, limit int) (pgx.Rows, error) {
		if last != nil {
			before = int64(last.Run)
		}
		return db.Query(ctx, s.sql.Get("runs_before"), pgx.QueryExecModeCacheDescribe, id, before, limit)
	})
	if err != nil {
		return nil, false, fmt.Errorf("runs of job %d: %w", id, err)
	}
	return runs, more, nil
}

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var output *string
	err = row.Scan(&r.Run, &r.Attempt, &r.Outcome, &r.StartedAt, &r.EndedAt, &r.NextDue, &r.Error, &r.Trace, &output,
		&r.ExecutorID, &r.Executor, &r.Host)
	if output != nil {
		r.Output = []byte(*output)
	}
	return r, err
}

// AuditEntry says who changed what.
type AuditEntry struct {
	ID     int64
	At     time.Time
	Actor  string // empty: plain SQL
	Token  AuditToken
	Role   string // of the database
	Action string // job.cancel, queue.pause, dead.redrive, ...
	Target string // job id, queue name, ...
	Before []byte // JSON; nil: nothing
	After  []byte
}

// AuditToken is the API token that an actor has used. Its ID is 0 if there was none.
type AuditToken struct {
	ID   int64
	Name string
}

// AuditFilter says which entries are meant. Zero fields filter nothing.
type AuditFilter struct {
	Target, Action, Actor string
	Since                 *time.Time
	Before                *int64 // only entries with smaller ids
}

// ListAudit reads audit entries, newest first, at most limit and about so many bytes (0: no bound). more: others follow.
func (s *Store) ListAudit(ctx context.Context, db DB, f AuditFilter, limit, bytes int) (entries []AuditEntry, more bool, err error) {
	entries, more, err = part(limit, bytes, scanAuditEntry, func(last *AuditEntry, limit int) (pgx.Rows, error) {
		if last != nil {
			f.Before = &last.ID
		}
		return db.Query(ctx, s.sql.Get("list_audit"), pgx.QueryExecModeCacheDescribe,
			nullIfEmpty(f.Target), nullIfEmpty(f.Action), nullIfEmpty(f.Actor), f.Since, f.Before, limit)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list audit entries: %w", err)
	}
	return entries, more, nil
}

func scanAuditEntry(row pgx.CollectableRow) (e AuditEntry, err error) {
	var before, after *string
	err = row.Scan(&e.ID, &e.At, &e.Actor, &e.Token.ID, &e.Token.Name, &e.Role, &e.Action, &e.Target, &before, &after)
	if before != nil {
		e.Before = []byte(*before)
	}
	if after != nil {
		e.After = []byte(*after)
	}
	return e, err
}

// ExecutorReport is a process that works, or did lately.
type ExecutorReport struct {
	ID        int64
	Name      string // client id
	Host      string
	PID       int
	State     string // alive, silent, stopped, dead
	StartedAt time.Time
	BeatAt    time.Time
	EndedAt   *time.Time
	Slots     int
	Running   int // as of its last heartbeat
	Leased    int // runs it has taken
	Queues    []string
	Kinds     []string
}

// Executors lists processes, the newest first; ended says whether those that have ended are wanted too; before: only smaller ids.
func (s *Store) Executors(ctx context.Context, db DB, ended bool, before *int64, limit int) ([]ExecutorReport, error) {
	return query(ctx, db, s.sql.Get("list_executors"), "list executors", func(row pgx.CollectableRow) (e ExecutorReport, err error) {
		err = row.Scan(&e.ID, &e.Name, &e.Host, &e.PID, &e.State, &e.StartedAt, &e.BeatAt, &e.EndedAt, &e.Slots, &e.Running,
			&e.Leased, &e.Queues, &e.Kinds)
		return e, err
	}, ended, before, limit)
}

// Waits is what keeps jobs of a kind in a queue waiting, or does not.
type Waits struct {
	Paused bool // the queue is, or all are
	Worked bool // a live executor works the kind
	Taken  bool // and takes jobs of the queue
}

// JobWaits reads what keeps jobs of a kind in a queue waiting.
func (s *Store) JobWaits(ctx context.Context, db DB, kind, queue string) (w Waits, err error) {
	err = db.QueryRow(ctx, s.sql.Get("job_waits"), pgx.QueryExecModeExec, kind, queue).Scan(&w.Paused, &w.Worked, &w.Taken)
	if err != nil {
		return w, fmt.Errorf("what jobs wait for: %w", err)
	}
	return w, nil
}

// query collects rows under a custom plan.
func query[T any](ctx context.Context, db DB, sql, what string, scan pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return list, nil
}
