package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/rivertype"
)

// SQLSTATEs that Pelton's own functions raise.
const (
	NotFound     = "PL001" // no such job or dead letter
	KeyHeld      = "PL002" // another job holds the unique key; the error's detail is its id
	FlowsNode    = "PL003" // the job works for a node of a flow; the error's detail says which
	NotEnded     = "PL004" // the job, or the run it works for, has not ended
	Erased       = "PL005" // the job was erased
	NotScheduled = "PL006" // the job does not wait for a time; the error's detail is its state
	InvalidValue = "22023"
)

// KeyHeldError says that a job cannot be retried because another one holds its unique key.
type KeyHeldError struct {
	JobID    int64
	HolderID int64
}

func (e *KeyHeldError) Error() string {
	return fmt.Sprintf("job %d: job %d holds its unique key", e.JobID, e.HolderID)
}

// NodeError says that it is not for a person to run a job again, or to give it another time, because it works for a node of a flow's run.
type NodeError struct {
	Run  int64  `json:"run"`
	Node string `json:"node"` // its path
	Text string `json:"-"`    // for people
}

func (e *NodeError) Error() string { return e.Text }

// EraseError says that a job cannot be erased yet, or that it cannot run again because it was.
type EraseError struct {
	Text   string // for people
	Erased bool   // it was erased
}

func (e *EraseError) Error() string { return e.Text }

// NotScheduledError says that a job cannot be given another time because it waits for none.
type NotScheduledError struct {
	JobID int64
	State rivertype.JobState
	Text  string // for people
}

func (e *NotScheduledError) Error() string { return e.Text }

// operateError gives the errors of Pelton's functions their Go types.
func operateError(err error, what string, id int64) error {
	if err == nil {
		return nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pgErr.Code {
		case NotFound:
			return fmt.Errorf("%s %d: %w", what, id, rivertype.ErrNotFound)
		case KeyHeld:
			if holder, parseErr := strconv.ParseInt(pgErr.Detail, 10, 64); parseErr == nil {
				return &KeyHeldError{JobID: id, HolderID: holder}
			}
		case NotEnded, Erased:
			return &EraseError{Text: pgErr.Message, Erased: pgErr.Code == Erased}
		case NotScheduled:
			return &NotScheduledError{JobID: id, State: rivertype.JobState(pgErr.Detail), Text: pgErr.Message}
		case FlowsNode:
			node := &NodeError{Text: pgErr.Message}
			_ = json.Unmarshal([]byte(pgErr.Detail), node) // a mark that no engine has made may name what is no run
			return node
		}
	}
	return fmt.Errorf("%s %d: %w", what, id, err)
}

// Cancel ends a job that waits and asks a running one to end. It returns the state afterwards.
func (s *Store) Cancel(ctx context.Context, db DB, id int64, actor string) (rivertype.JobState, error) {
	var after rivertype.JobState
	err := db.QueryRow(ctx, s.sql.Get("cancel"), id, nullIfEmpty(actor)).Scan(&after)
	return after, operateError(err, "cancel job", id)
}

// CancelMany cancels jobs, sorted by id. Those that are not there are left out.
func (s *Store) CancelMany(ctx context.Context, db DB, ids []int64, actor string) error {
	if _, err := db.Exec(ctx, s.sql.Get("cancel_many"), ids, ids[0], ids[len(ids)-1], nullIfEmpty(actor)); err != nil {
		return fmt.Errorf("cancel %d jobs from %d on: %w", len(ids), ids[0], err)
	}
	return nil
}

// Retry makes a job available now. It returns the state afterwards. The error is a *KeyHeldError if another job holds its
// unique key, a *NodeError if the job has ended and worked for a node of a flow.
func (s *Store) Retry(ctx context.Context, db DB, id int64, actor string) (rivertype.JobState, error) {
	var after rivertype.JobState
	err := db.QueryRow(ctx, s.sql.Get("retry"), id, nullIfEmpty(actor)).Scan(&after)
	return after, operateError(err, "retry job", id)
}

// Reschedule gives a job that waits for its time another one. The error is a *NotScheduledError if it does not wait for one, a *NodeError if it works
// for a node of a flow.
func (s *Store) Reschedule(ctx context.Context, db DB, id int64, at time.Time, actor string) error {
	_, err := db.Exec(ctx, s.sql.Get("reschedule"), id, at, nullIfEmpty(actor))
	return operateError(err, "reschedule job", id)
}

// Change is what a person changes of a job; zero fields stay as they are.
type Change struct {
	Queue       string
	Priority    int16
	MaxAttempts int16
	Args        []byte // JSON
	Metadata    []byte // a JSON object that is merged into the job's
}

// Moves tells whether the job goes into another line.
func (c Change) Moves() bool { return c.Queue != "" || c.Priority != 0 }

// Change writes down a change and moves the job if it waits in a line. It returns the run that the change counts for.
func (s *Store) Change(ctx context.Context, db DB, id int64, change Change, actor string) (run int32, err error) {
	err = db.QueryRow(ctx, s.sql.Get("change"), id, nullIfEmpty(change.Queue), nullIfZero(change.Priority),
		nullIfZero(change.MaxAttempts), nullIfNone(change.Args), nullIfNone(change.Metadata), nullIfEmpty(actor)).Scan(&run)
	return run, operateError(err, "update job", id)
}

// MoveAgain moves a further run that the job has entered since Change returned run. It is called after Change's commit.
func (s *Store) MoveAgain(ctx context.Context, db DB, id int64, run int32) error {
	_, err := db.Exec(ctx, s.sql.Get("move_again"), id, run)
	return operateError(err, "move job", id)
}

// Erase blanks what an ended job held, and returns what that was, as JSON. The error is an *EraseError if the job has not ended.
func (s *Store) Erase(ctx context.Context, db DB, id int64, actor string) (done json.RawMessage, err error) {
	err = db.QueryRow(ctx, s.sql.Get("erase"), id, nullIfEmpty(actor)).Scan(&done)
	return done, operateError(err, "erase job", id)
}

// Delete removes jobs and returns the state each had, rivertype.JobStateRunning if it was left alone. Jobs that do not exist
// are not in the result.
func (s *Store) Delete(ctx context.Context, db DB, ids []int64, actor string) (map[int64]rivertype.JobState, error) {
	rows, err := db.Query(ctx, s.sql.Get("delete_jobs"), ids, nullIfEmpty(actor))
	if err != nil {
		return nil, fmt.Errorf("delete jobs: %w", err)
	}
	states := make(map[int64]rivertype.JobState, len(ids))
	var id int64
	var was rivertype.JobState
	_, err = pgx.ForEachRow(rows, []any{&id, &was}, func() error {
		if was != "missing" {
			states[id] = was
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("delete jobs: %w", err)
	}
	return states, nil
}

func nullIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func nullIfZero(n int16) *int16 {
	if n == 0 {
		return nil
	}
	return &n
}

func nullIfNone(b []byte) *string {
	if b == nil {
		return nil
	}
	text := string(b)
	return &text
}

// nullIfNo keeps an empty filter from matching nothing.
func nullIfNo[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}
