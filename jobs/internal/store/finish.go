package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// finishLimits: a finish waits for nobody but an open CompleteTx of one of its own runs, and not long for that.
var finishLimits = Limits{Lock: 200 * time.Millisecond, Statement: 30 * time.Second}

// Finish records the results in one transaction, sorted by key, and returns those that were refused because somebody else had
// ended the run. results are reordered. Dead letters are copied whole. Errors: LockNotAvailable if a run is held by an open
// transaction, class 22 for a value that Postgres cannot store; nothing was recorded then, split the batch. After an error with
// Unsure it may be: repeating is safe, a run of our own is not taken for refused.
func (s *Store) Finish(ctx context.Context, executor int64, results []*Result) (refused []*Result, err error) {
	ctx, cancel := finishLimits.patience(ctx)
	defer cancel()
	sortResults(results)
	if !slices.ContainsFunc(results, func(r *Result) bool { return !r.plain() }) {
		err := s.finishPlain(ctx, executor, results)
		if SQLState(err) != UniqueViolation {
			return nil, err
		}
	}
	recorded, err := s.finishFull(ctx, executor, results)
	if err != nil || len(recorded) == len(results) {
		return nil, err
	}
	return s.refused(ctx, executor, results, recorded)
}

func sortResults(results []*Result) {
	slices.SortFunc(results, func(a, b *Result) int {
		if a.JobID != b.JobID {
			return int(min(1, max(-1, a.JobID-b.JobID)))
		}
		return int(a.Run - b.Run)
	})
}

// finishPlain records completed runs by COPY, which costs both ends less than arrays do: see finish_copy.
func (s *Store) finishPlain(ctx context.Context, executor int64, results []*Result) error {
	conn, err := s.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire a connection: %w", err)
	}
	defer conn.Release()
	rows := newBinaryCopy(len(results), func(b []byte, i int) []byte { return appendCompleted(b, executor, results[i]) })
	if _, err := conn.Conn().PgConn().CopyFrom(ctx, rows, s.sql.Get("finish_copy")); err != nil {
		s.rollBack(ctx, conn.Conn())
		return fmt.Errorf("finish %d runs: %w", len(results), err)
	}
	return nil
}

// appendCompleted encodes a row for finish_copy.
func appendCompleted(b []byte, executor int64, r *Result) []byte {
	b = appendTime(appendBigint(appendInt16(b, 7), r.JobID), r.EndedAt)
	if r.StartedAt != nil {
		b = appendTime(b, *r.StartedAt)
	} else {
		b = appendNull(b)
	}
	b = appendInt32(appendInt32(appendBigint(b, executor), 4), int(r.Run))
	return appendSmallint(appendText(b, string(r.Outcome)), r.Attempt)
}

func (s *Store) finishFull(ctx context.Context, executor int64, results []*Result) (map[RunKey]bool, error) {
	recorded := make(map[RunKey]bool, len(results))
	dead := deadIDs(results)
	err := s.Tx(ctx, finishLimits, func(tx pgx.Tx) error {
		if err := s.findPlaces(ctx, tx, results); err != nil {
			return err
		}
		keys, err := s.insertAttempts(ctx, tx, executor, results)
		if err != nil {
			return err
		}
		for _, key := range keys {
			recorded[key] = true
		}
		if dead = recordedOnly(dead, results, recorded); len(dead) == 0 {
			return nil
		}
		return s.BuryTx(ctx, tx, dead, "exhausted")
	})
	if err != nil {
		return nil, fmt.Errorf("finish %d runs: %w", len(results), err)
	}
	return recorded, nil
}

// findPlaces looks up where runs that go back into the line at once belong now: a person may have moved the job while it ran.
func (s *Store) findPlaces(ctx context.Context, db DB, results []*Result) error {
	var ids []int64
	for _, r := range results {
		if r.Due == nil && !r.Outcome.Final() && r.Outcome != state.Parked {
			ids = append(ids, r.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	places, err := s.Places(ctx, db, ids)
	if err != nil {
		return err
	}
	for _, r := range results {
		p, found := places[r.JobID]
		if !found || r.Outcome == state.Parked {
			continue
		}
		r.Priority = p.Priority
		if !strings.HasPrefix(r.Line, p.Line+"/") {
			r.Line = p.Line
		}
	}
	return nil
}

// InsertAttemptTx records one run in the caller's transaction, for CompleteTx; false: somebody else had ended it.
func (s *Store) InsertAttemptTx(ctx context.Context, db DB, executor int64, r *Result) (bool, error) {
	keys, err := s.insertAttempts(ctx, db, executor, []*Result{r})
	return len(keys) == 1, err
}

func (s *Store) insertAttempts(ctx context.Context, db DB, executor int64, results []*Result) ([]RunKey, error) {
	rows, err := db.Query(ctx, s.sql.Get("finish_full"), append([]any{executor}, resultColumns(results)...)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RunKey])
}

// deadIDs lists the jobs that were discarded.
func deadIDs(results []*Result) []int64 {
	var ids []int64
	for _, r := range results {
		if r.Outcome == state.Discarded {
			ids = append(ids, r.JobID)
		}
	}
	return ids
}

func recordedOnly(ids []int64, results []*Result, recorded map[RunKey]bool) []int64 {
	if len(ids) == 0 {
		return nil
	}
	ids = ids[:0]
	for _, r := range results {
		if r.Outcome == state.Discarded && recorded[r.Key()] {
			ids = append(ids, r.JobID)
		}
	}
	return ids
}

func resultColumns(results []*Result) []any {
	n := len(results)
	ids, runs, attempts, outcomes := make([]int64, n), make([]int32, n), make([]int16, n), make([]string, n)
	started, ended, due := make([]*time.Time, n), make([]time.Time, n), make([]*time.Time, n)
	errors, traces, outputs := make([]*string, n), make([]*string, n), make([]*string, n)
	metadata, carried := make([]*string, n), make([]*string, n)
	lines, priorities := make([]*string, n), make([]int16, n)
	flowRuns, flowNodes := make([]int64, n), make([]int32, n)
	for i, r := range results {
		ids[i], runs[i], attempts[i], outcomes[i] = r.JobID, r.Run, r.Attempt, string(r.Outcome)
		started[i], ended[i], due[i] = r.StartedAt, r.EndedAt, r.Due
		errors[i], traces[i], lines[i] = orNull(r.Error), orNull(r.Trace), orNull(r.Line)
		outputs[i], metadata[i], carried[i] = orNull(text(r.Output)), orNull(text(r.Metadata)), orNull(text(r.Carried))
		priorities[i], flowRuns[i], flowNodes[i] = r.Priority, r.FlowRun, r.FlowNode
	}
	return []any{
		ids, runs, attempts, outcomes, started, ended, due, errors, traces, outputs, metadata, carried, lines, priorities,
		flowRuns, flowNodes,
	}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Recorded picks from results those that are stored as our own already: by a CompleteTx that has committed.
func (s *Store) Recorded(ctx context.Context, executor int64, results []*Result) (map[*Result]bool, error) {
	ctx, cancel := finishLimits.patience(ctx)
	defer cancel()
	absent, err := s.refused(ctx, executor, results, nil)
	if err != nil {
		return nil, err
	}
	own := make(map[*Result]bool, len(results))
	for _, r := range results {
		own[r] = !slices.Contains(absent, r)
	}
	return own, nil
}

// refused lists the results that were not recorded, less those that are stored as our own: from a commit whose answer was lost, or
// from a CompleteTx. Their Stored is set if their outcome is another.
func (s *Store) refused(
	ctx context.Context, executor int64, results []*Result, recorded map[RunKey]bool,
) ([]*Result, error) {
	var missing []*Result
	var ids []int64
	for _, r := range results {
		if !recorded[r.Key()] {
			missing = append(missing, r)
			ids = append(ids, r.JobID)
		}
	}
	rows, err := s.byIDs(ctx, s.Pool, "stored_attempts", ids)
	if err != nil {
		return nil, fmt.Errorf("read who ended runs: %w", err)
	}
	stored := map[RunKey]storedRun{}
	var key RunKey
	var run storedRun
	_, err = pgx.ForEachRow(rows, []any{&key.JobID, &key.Run, &run.executor, &run.outcome, &run.started}, func() error {
		stored[key] = run
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read who ended runs: %w", err)
	}
	return slices.DeleteFunc(missing, func(r *Result) bool {
		run := stored[r.Key()]
		ours := run.from(executor, r)
		if ours && run.outcome != r.Outcome {
			r.Stored = run.outcome
		}
		return ours
	}), nil
}

// storedRun is who ended a run, and how.
type storedRun struct {
	executor *int64
	outcome  state.Outcome
	started  *time.Time
}

// from tells whether the row came from this executor's own finish of r, or from the worker's CompleteTx: the executor alone
// does not say so, as the reaper's row names it too. The time of the start is one that nobody else has.
func (s storedRun) from(executor int64, r *Result) bool {
	if s.executor == nil || *s.executor != executor || s.outcome == state.Lost {
		return false
	}
	if s.started == nil || r.StartedAt == nil {
		return s.started == nil && r.StartedAt == nil && s.outcome == r.Outcome
	}
	return s.started.UnixMicro() == r.StartedAt.UnixMicro()
}
