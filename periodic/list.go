package periodic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Entry is a schedule that is stored, and where it is.
type Entry struct {
	ID int64 `json:"id"`
	Schedule

	Owner     string     `json:"owner,omitempty"` // the service whose code declares it
	Code      bool       `json:"code,omitempty"`  // only the owner's processes can fire it
	Version   int        `json:"version"`         // raised by every change
	CreatedAt time.Time  `json:"created_at"`
	ChangedAt time.Time  `json:"changed_at"`
	PausedAt  *time.Time `json:"paused_at"`            // nil: not paused
	PausedWhy PauseWhy   `json:"paused_why,omitempty"` // if it is
	PausedBy  string     `json:"paused_by,omitempty"`

	TriggerCron string `json:"trigger_cron,omitempty"` // the times that PutTrigger gave it last; empty: it never did

	NextAt   *time.Time `json:"next_at"`              // its next tick that may run; nil: none, or it is paused, or its last run has to end first
	StartsAt *time.Time `json:"starts_at,omitempty"`  // when that starts, if Spread or Jitter put it off
	Waiting  *time.Time `json:"waiting,omitempty"`    // the tick that runs when the run before has ended
	LiveJob  *int64     `json:"live_job,omitempty"`   // its newest run, which may have ended
	LiveRun  *int64     `json:"live_run,omitempty"`   // the same, of a flow
	LiveFrom *time.Time `json:"live_since,omitempty"` // when that began
	Failures int        `json:"failures,omitempty"`   // times in a row that it could not be fired, for reasons that may pass
	LastTick *Tick      `json:"last_tick"`            // nil: none yet, or retention has dropped it
}

// PauseWhy says why a schedule is paused.
type PauseWhy string

// The reasons for pauses.
const (
	PausedByPerson PauseWhy = "person"  // somebody paused it
	PausedRemoved  PauseWhy = "removed" // its owner's code does not declare it any more
)

// Outcome says what became of a tick.
type Outcome string

// The outcomes of ticks.
const (
	TickFired   Outcome = "fired"   // its run was started
	TickSkipped Outcome = "skipped" // it does not run; Reason says why
	TickFailed  Outcome = "failed"  // its run could not be started; Reason and Note say why
)

// Outcomes are all of them.
func Outcomes() []Outcome { return []Outcome{TickFired, TickSkipped, TickFailed} }

// Source says what made a tick.
type Source string

// The sources of ticks.
const (
	SourceClock    Source = "clock"
	SourceTrigger  Source = "trigger"
	SourceBackfill Source = "backfill"
)

// Sources are all of them.
func Sources() []Source { return []Source{SourceClock, SourceTrigger, SourceBackfill} }

// Tick is what became of one.
type Tick struct {
	At         time.Time  `json:"at"` // when it was to be, whenever it was
	N          int        `json:"n"`  // 0: the clock's tick of this time that may run; others of the same time have numbers
	Source     Source     `json:"source"`
	Outcome    Outcome    `json:"outcome"`
	Reason     string     `json:"reason,omitempty"` // of one that did not run
	Note       string     `json:"note,omitempty"`   // further words
	Wall       *time.Time `json:"wall,omitempty"`   // its time on the wall, coded as UTC, where that is not At in the schedule's zone
	JobID      *int64     `json:"job_id,omitempty"`
	RunID      *int64     `json:"run_id,omitempty"` // of a flow
	BackfillID *int64     `json:"backfill_id,omitempty"`
	DecidedAt  time.Time  `json:"decided_at"`
	Actor      string     `json:"actor,omitempty"` // who triggered it
}

// ListParams say which schedules to list. Zero fields ask for nothing.
type ListParams struct {
	Prefix string // of names
	Owner  *string
	Kind   string // of the target, a job
	Flow   string // the target: PROJECT/FLOW, or PROJECT
	Paused *bool

	// Projects are those of whose flows; nil: any schedule.
	Projects []string

	After string // continue a list: the name of its last schedule
	Limit int    // 1 to 10,000; defaults to 100
}

// List lists schedules by name. A page that has Limit entries may have another behind it, After the last one's name.
func (c *Client) List(ctx context.Context, p ListParams) ([]Entry, error) {
	return c.list(ctx, c.store.Pool, p)
}

// ListTx is List as seen in the caller's transaction.
func (c *Client) ListTx(ctx context.Context, tx pgx.Tx, p ListParams) ([]Entry, error) {
	return c.list(ctx, tx, p)
}

func (c *Client) list(ctx context.Context, db store.DB, p ListParams) ([]Entry, error) {
	limit, err := checkLimit(p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	f := store.ScheduleFilter{Prefix: p.Prefix, After: p.After, Owner: p.Owner, Kind: p.Kind, Paused: p.Paused, Projects: p.Projects, Limit: limit}
	f.Project, f.Flow, _ = strings.Cut(p.Flow, "/")
	rows, err := c.store.Schedules(ctx, db, f)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i := range rows {
		if entries[i], err = entryOf(&rows[i]); err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
	}
	return entries, nil
}

const (
	defaultLimit = 100
	maxLimit     = 10_000
)

func checkLimit(limit int) (int, error) {
	if limit == 0 {
		return defaultLimit, nil
	}
	if limit < 1 || limit > maxLimit {
		return 0, fmt.Errorf("limit is %d, want 1 to %d", limit, maxLimit)
	}
	return limit, nil
}

// Get reads a schedule. ErrNotFound if there is none of that name.
func (c *Client) Get(ctx context.Context, name string) (*Entry, error) {
	return c.get(ctx, c.store.Pool, name)
}

// GetTx is Get as seen in the caller's transaction.
func (c *Client) GetTx(ctx context.Context, tx pgx.Tx, name string) (*Entry, error) {
	return c.get(ctx, tx, name)
}

func (c *Client) get(ctx context.Context, db store.DB, name string) (*Entry, error) {
	rows, err := c.store.Schedules(ctx, db, store.ScheduleFilter{Name: &name, Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", name, err)
	}
	if len(rows) == 0 {
		return nil, c.notFound(ctx, db, name)
	}
	entry, err := entryOf(&rows[0])
	if err != nil {
		return nil, err
	}
	return &entry, nil
}

// notFound is ErrNotFound with what may have been meant.
func (c *Client) notFound(ctx context.Context, db store.DB, name string) error {
	hint := ""
	if names, err := c.store.Near(ctx, db, name); err == nil {
		if near := nearest(name, names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return fmt.Errorf("there is no schedule %q%s (%w)", name, hint, ErrNotFound)
}

// entryOf turns a row into what users see.
func entryOf(r *store.ScheduleRow) (Entry, error) {
	e := Entry{
		ID: r.ID, Owner: r.Owner, Code: r.Code, Version: r.Version, CreatedAt: r.CreatedAt.UTC(), ChangedAt: r.ChangedAt.UTC(),
		PausedAt: utc(r.PausedAt), Waiting: utc(r.Waiting), LiveJob: r.LiveJob, LiveRun: r.LiveRun, LiveFrom: utc(r.LiveSince),
		Failures: r.Failures,
	}
	if err := json.Unmarshal([]byte(r.Spec), &e.Schedule); err != nil {
		return e, fmt.Errorf("schedule %q: read what is stored: %w", r.Name, err)
	}
	e.Name = r.Name
	e.TriggerCron = text(r.Trigger)
	e.PausedWhy, e.PausedBy = PauseWhy(text(r.PausedWhy)), text(r.PausedBy)
	if e.PausedAt == nil {
		e.setNext(r.NextAt)
	}
	if r.TickAt != nil {
		e.LastTick = &Tick{
			At: r.TickAt.UTC(), N: *r.TickN, Source: Source(text(r.TickSource)), Outcome: Outcome(text(r.TickOutcome)), Reason: text(r.TickReason),
			Note: text(r.TickNote), Wall: r.TickWall, JobID: r.TickJob, RunID: r.TickRun, BackfillID: r.TickBackfill, DecidedAt: r.TickDecided.UTC(),
			Actor: text(r.TickActor),
		}
	}
	return e, nil
}

// setNext sets what is known of the next tick.
func (e *Entry) setNext(at *time.Time) {
	e.NextAt, e.StartsAt = utc(at), nil
	if at == nil {
		return
	}
	by := tick.Spread(e.ID, time.Duration(e.Spread)) + tick.Jitter(e.ID, *at, time.Duration(e.Jitter))
	if starts := e.NextAt.Add(by); by > 0 {
		e.StartsAt = &starts
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// TicksParams say which ticks of a schedule to list. Zero fields ask for nothing.
type TicksParams struct {
	Outcome  Outcome
	Source   Source
	Since    time.Time // from this time on
	Until    time.Time // before this time
	Backfill int64     // of this backfill
	After    string    // continue a list: its Cursor
	Limit    int       // 1 to 10,000; defaults to 100
}

// TicksResult is a page of ticks.
type TicksResult struct {
	Ticks  []Tick
	Cursor string // continues after the last of Ticks; empty: that was all
}

// Ticks lists what became of a schedule's ticks, the latest first. Retention drops old ones.
func (c *Client) Ticks(ctx context.Context, name string, p TicksParams) (*TicksResult, error) {
	return c.ticks(ctx, c.store.Pool, name, p)
}

// TicksTx is Ticks as seen in the caller's transaction.
func (c *Client) TicksTx(ctx context.Context, tx pgx.Tx, name string, p TicksParams) (*TicksResult, error) {
	return c.ticks(ctx, tx, name, p)
}

func (c *Client) ticks(ctx context.Context, db store.DB, name string, p TicksParams) (*TicksResult, error) {
	entry, err := c.get(ctx, db, name)
	if err != nil {
		return nil, err
	}
	f := store.TickFilter{Schedule: entry.ID, Outcome: string(p.Outcome), Source: string(p.Source), Since: p.Since, Until: p.Until, Backfill: p.Backfill}
	if f.Limit, err = checkLimit(p.Limit); err != nil {
		return nil, fmt.Errorf("ticks of schedule %q: %w", name, err)
	}
	if p.After != "" {
		if f.BeforeTick, f.BeforeN, err = readCursor(p.After); err != nil {
			return nil, fmt.Errorf("ticks of schedule %q: %w", name, err)
		}
	}
	rows, err := c.store.Ticks(ctx, db, f)
	if err != nil {
		return nil, fmt.Errorf("ticks of schedule %q: %w", name, err)
	}
	result := &TicksResult{Ticks: make([]Tick, len(rows))}
	for i := range rows {
		r := &rows[i]
		result.Ticks[i] = Tick{
			At: r.At.UTC(), N: r.N, Source: Source(r.Source), Outcome: Outcome(r.Outcome), Reason: text(r.Reason), Note: text(r.Note), Wall: r.Wall,
			JobID: r.Job, RunID: r.Run, BackfillID: r.Backfill, DecidedAt: r.Decided.UTC(), Actor: text(r.Actor),
		}
	}
	if len(rows) == f.Limit {
		last := &rows[len(rows)-1]
		result.Cursor = writeCursor(last.Key, last.N)
	}
	return result, nil
}

// A cursor of ticks is opaque: the key and the number of the last one.
func writeCursor(tick int64, n int) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", tick, n))
}

// ErrBadCursor is of TicksParams.After.
var ErrBadCursor = errors.New("the cursor is not one that a list of ticks gave")

func readCursor(cursor string) (tick *int64, n int, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, 0, ErrBadCursor
	}
	before, after, _ := strings.Cut(string(decoded), ".")
	key, err := strconv.ParseInt(before, 10, 64)
	if err != nil {
		return nil, 0, ErrBadCursor
	}
	if n, err = strconv.Atoi(after); err != nil {
		return nil, 0, ErrBadCursor
	}
	return &key, n, nil
}
