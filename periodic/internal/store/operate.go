package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ScheduleFilter says which schedules to read. Empty fields and nil pointers filter nothing.
type ScheduleFilter struct {
	Prefix, After       string
	Name, Owner         *string
	Kind, Project, Flow string
	Paused              *bool
	Projects            []string // of their flows; nil: any
	Limit               int
}

// ScheduleRow is a schedule, where it is, and its last tick.
type ScheduleRow struct {
	ID        int64
	Name      string
	Owner     string
	Code      bool
	Version   int
	CreatedAt time.Time
	ChangedAt time.Time
	PausedAt  *time.Time
	PausedWhy *string
	PausedBy  *string
	Trigger   *string
	Spec      string

	NextAt    *time.Time
	Waiting   *time.Time
	LiveJob   *int64
	LiveRun   *int64
	LiveSince *time.Time
	Failures  int

	TickAt       *time.Time
	TickN        *int
	TickSource   *string
	TickOutcome  *string
	TickReason   *string
	TickNote     *string
	TickWall     *time.Time
	TickJob      *int64
	TickRun      *int64
	TickBackfill *int64
	TickDecided  *time.Time
	TickActor    *string
}

// Schedules reads schedules by name.
func (s *Store) Schedules(ctx context.Context, db DB, f ScheduleFilter) ([]ScheduleRow, error) {
	return all[ScheduleRow](ctx, s, db, "schedules", nullText(f.Prefix), nullText(f.After), f.Owner, nullText(f.Kind), nullText(f.Project),
		nullText(f.Flow), f.Paused, f.Limit, f.Name, f.Projects)
}

// TickFilter says which ticks of a schedule to read. Empty fields filter nothing.
type TickFilter struct {
	Schedule        int64
	BeforeTick      *int64 // only what comes before this place, together with BeforeN
	BeforeN         int
	Since, Until    time.Time
	Outcome, Source string
	Backfill        int64
	Limit           int
}

// TickRow is a tick as it lies in the table.
type TickRow struct {
	Key      int64
	At       time.Time
	N        int
	Source   string
	Outcome  string
	Reason   *string
	Note     *string
	Wall     *time.Time
	Job      *int64
	Run      *int64
	Backfill *int64
	Decided  time.Time
	Actor    *string
}

// Ticks reads what became of a schedule's ticks, the latest first.
func (s *Store) Ticks(ctx context.Context, db DB, f TickFilter) ([]TickRow, error) {
	return all[TickRow](ctx, s, db, "ticks", pgx.QueryExecModeCacheDescribe, f.Schedule, f.BeforeTick, f.BeforeN, null(f.Since), null(f.Until),
		nullText(f.Outcome), nullText(f.Source), nullID(f.Backfill), f.Limit)
}

// Near reads names that may have been meant.
func (s *Store) Near(ctx context.Context, db DB, name string) ([]string, error) {
	rows, err := db.Query(ctx, s.sql.Get("near"), name)
	if err != nil {
		return nil, fmt.Errorf("look for names: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for names: %w", err)
	}
	return names, nil
}

// ID finds a schedule by its name; 0: there is none.
func (s *Store) ID(ctx context.Context, db DB, name string) (int64, error) {
	rows, err := s.Schedules(ctx, db, ScheduleFilter{Name: &name, Limit: 1})
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}

// Facts is what verbs ask of a schedule beside what firing asks.
type Facts struct {
	Paused    bool
	PausedWhy string
	Code      bool
}

// Facts reads a schedule that is locked.
func (s *Store) Facts(ctx context.Context, tx pgx.Tx, id int64) (Facts, error) {
	rows, err := all[Facts](ctx, s, tx, "facts", id)
	if err != nil || len(rows) == 0 {
		return Facts{}, err
	}
	return rows[0], nil
}

// Now is the database's time.
func (s *Store) Now(ctx context.Context, db DB) (now time.Time, err error) {
	if err := db.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return now, fmt.Errorf("ask for the time: %w", err)
	}
	return now, nil
}

// Owned is a schedule of an owner.
type Owned struct {
	ID        int64
	Name      string
	PausedWhy string
}

// OwnedBy reads the schedules of an owner.
func (s *Store) OwnedBy(ctx context.Context, db DB, owner string) ([]Owned, error) {
	return all[Owned](ctx, s, db, "names_of", owner)
}

// LockOwner lets one transaction at a time change what an owner has.
func (s *Store) LockOwner(ctx context.Context, tx pgx.Tx, owner string) error {
	return s.exec(ctx, tx, "lock_owner", owner)
}

// Add stores a new schedule and its row of schedule_due, which it locks. false: the name is taken.
func (s *Store) Add(ctx context.Context, tx pgx.Tx, name, owner string, code *string, spec []byte) (int64, bool, error) {
	type added struct {
		ID        int64
		CreatedAt time.Time
	}
	rows, err := all[added](ctx, s, tx, "add_schedule", name, owner, code != nil, string(spec))
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	err = s.exec(ctx, tx, "add_due", rows[0].ID, code)
	return rows[0].ID, err == nil, err
}

// Change stores another spec of a schedule that is locked.
func (s *Store) Change(ctx context.Context, tx pgx.Tx, id int64, code *string, spec []byte) error {
	if err := s.exec(ctx, tx, "change_schedule", id, code != nil, string(spec)); err != nil {
		return err
	}
	return s.exec(ctx, tx, "set_code", id, code)
}

// Adopt gives a schedule that is locked another owner.
func (s *Store) Adopt(ctx context.Context, tx pgx.Tx, id int64, owner string) error {
	return s.exec(ctx, tx, "adopt", id, owner)
}

// MarkTrigger notes the times that a push has given a schedule that is locked.
func (s *Store) MarkTrigger(ctx context.Context, tx pgx.Tx, id int64, cron string) error {
	return s.exec(ctx, tx, "mark_trigger", id, cron)
}

// Pause notes a pause of a schedule that is locked.
func (s *Store) Pause(ctx context.Context, tx pgx.Tx, id int64, why, by string) error {
	return s.exec(ctx, tx, "pause_schedule", id, why, by)
}

// Resume notes the end of a pause of a schedule that is locked.
func (s *Store) Resume(ctx context.Context, tx pgx.Tx, id int64) error {
	return s.exec(ctx, tx, "resume_schedule", id)
}

// Delete deletes a schedule that is locked.
func (s *Store) Delete(ctx context.Context, tx pgx.Tx, id int64) error {
	return s.exec(ctx, tx, "delete_schedule", id)
}

// Audit records what somebody did.
func (s *Store) Audit(ctx context.Context, db DB, actor, action, target string, before, after any) error {
	texts := [2]*string{}
	for i, value := range []any{before, after} {
		if value == nil {
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode what is audited: %w", err)
		}
		text := string(encoded)
		texts[i] = &text
	}
	return s.exec(ctx, db, "audit", actor, action, target, texts[0], texts[1])
}
