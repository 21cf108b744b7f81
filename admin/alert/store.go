package alert

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

//go:embed sql/*.sql
var files embed.FS

// ErrNotFound says that there is no such rule, channel or mute.
var ErrNotFound = errors.New("not found")

// InputError is about a value that was given.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

// Any stands for all rules or all subjects in a mute.
const Any = "*"

// States of an alert.
const (
	StatePending = "pending" // bad, but not for long enough yet
	StateFiring  = "firing"
)

// Alert is something that is bad.
type Alert struct {
	Rule        string     `json:"rule"`
	Type        string     `json:"type"`
	Severity    string     `json:"severity"`
	Subject     string     `json:"subject"`
	Title       string     `json:"title"` // the subject as people call it
	State       string     `json:"state"`
	Text        string     `json:"text"`
	Value       float64    `json:"value"`
	Since       time.Time  `json:"since"`
	FiringSince *time.Time `json:"firing_since"`
	GoodSince   *time.Time `json:"good_since"` // it is bad no more, but not for long enough yet
	NoticedAt   *time.Time `json:"noticed_at"` // the last notice
	Notices     int        `json:"notices"`
	MutedUntil  *time.Time `json:"muted_until"`
	Channels    []string   `json:"channels"` // that got a notice
}

// Watch is a rule in force, and how it does.
type Watch struct {
	Rule

	NoticedAt *time.Time `json:"noticed_at"`
	Fault     string     `json:"fault"` // why it cannot be read; empty: it can
	FaultAt   *time.Time `json:"fault_at"`
	Firing    int        `json:"firing"`
	Pending   int        `json:"pending"`
}

// Mute keeps notices from being sent for a while.
type Mute struct {
	Rule      string    `json:"rule"`    // Any: of any rule
	Subject   string    `json:"subject"` // Any: of any subject
	Until     time.Time `json:"until"`
	Reason    string    `json:"reason"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
}

func (m Mute) utc() Mute {
	m.Until, m.CreatedAt = m.Until.UTC(), m.CreatedAt.UTC()
	return m
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return new(t.UTC())
}

// Status is everything there is to see of alerts.
type Status struct {
	Name        string            `json:"name"`
	Source      string            `json:"source"` // the file of the rules; empty: those that are built in
	PublishedAt *time.Time        `json:"published_at"`
	PublishedBy string            `json:"published_by"`
	EvaluatedAt *time.Time        `json:"evaluated_at"`
	EvaluatedBy string            `json:"evaluated_by"`
	Late        bool              `json:"late"`     // nobody has evaluated the rules for minutes
	Channels    map[string]string `json:"channels"` // types by name
	Rules       []Watch           `json:"rules"`
	Alerts      []Alert           `json:"alerts"`
	Mutes       []Mute            `json:"mutes"`
}

// Store reads and changes what the database holds of alerts, in one Postgres schema. Safe for concurrent use.
type Store struct {
	pool   *pgxpool.Pool
	schema string
	sql    *sqlfile.Set
}

// NewStore makes a store on a pool, which stays the caller's. The name of the schema defaults to "pelton".
func NewStore(pool *pgxpool.Pool, name string) (*Store, error) {
	name = cmp.Or(name, schema.DefaultName)
	if err := schema.CheckName(name); err != nil {
		return nil, err
	}
	return &Store{pool: pool, schema: name, sql: sqlfile.Load(files, "sql", name)}, nil
}

// turn is the row of alert_turn.
type turn struct {
	PublishedAt *time.Time
	EvaluatedAt *time.Time
	PublishedBy *string
	EvaluatedBy *string
	Source      *string
	Rules       []byte
	Now         time.Time
	Database    string
}

// List lists what is bad: what fires first, and of that what is the worst, then the newest.
func (s *Store) List(ctx context.Context) ([]Alert, error) {
	status, err := s.Status(ctx)
	return status.Alerts, err
}

// Status reads everything there is to see, as of one moment.
func (s *Store) Status(ctx context.Context) (status Status, err error) {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		t, p, err := s.published(ctx, tx, "turn")
		if err != nil {
			return err
		}
		status = Status{
			Name: p.title(s.schema, t.Database), Source: deref(t.Source), PublishedAt: utc(t.PublishedAt), PublishedBy: deref(t.PublishedBy),
			EvaluatedAt: utc(t.EvaluatedAt), EvaluatedBy: deref(t.EvaluatedBy), Channels: p.Channels,
		}
		const patience = 2 * time.Minute
		status.Late = t.EvaluatedAt == nil || t.Now.Sub(*t.EvaluatedAt) > patience
		if status.Mutes, err = all[Mute](ctx, s, tx, "mutes", t.Now, nil, nil, nil); err != nil {
			return err
		}
		known, err := all[ruleRow](ctx, s, tx, "rules")
		if err != nil {
			return err
		}
		states, err := all[stateRow](ctx, s, tx, "states", nil)
		if err != nil {
			return err
		}
		status.fill(&p, known, states)
		return nil
	})
	return status, err
}

// MuteListParams say which mutes to list. Zero fields ask for nothing.
type MuteListParams struct {
	After *Mute // continue a list: its last mute
	Limit int   // at most so many; 0: all
}

// Mutes lists the mutes that hold, by rule and subject.
func (s *Store) Mutes(ctx context.Context, p MuteListParams) ([]Mute, error) {
	var rule, subject *string
	if p.After != nil {
		rule, subject = &p.After.Rule, &p.After.Subject
	}
	mutes, err := all[Mute](ctx, s, s.pool, "mutes", nil, rule, subject, sqlfile.AtMost(p.Limit))
	for i := range mutes {
		mutes[i] = mutes[i].utc()
	}
	return mutes, err
}

type ruleRow struct {
	Rule      string
	NoticedAt *time.Time
	FaultAt   *time.Time
	Fault     *string
}

type stateRow struct {
	Rule string
	state
}

func (status *Status) fill(p *published, known []ruleRow, states []stateRow) {
	status.Rules, status.Alerts = []Watch{}, []Alert{}
	for i := range status.Mutes {
		status.Mutes[i] = status.Mutes[i].utc()
	}
	at := map[string]*Watch{}
	for _, r := range p.Rules {
		status.Rules = append(status.Rules, Watch{Rule: r})
	}
	for i := range status.Rules {
		at[status.Rules[i].Name] = &status.Rules[i]
	}
	for _, k := range known {
		if w := at[k.Rule]; w != nil {
			w.NoticedAt, w.FaultAt, w.Fault = utc(k.NoticedAt), utc(k.FaultAt), deref(k.Fault)
		}
	}
	for _, row := range states {
		w := at[row.Rule]
		if w == nil {
			w = &Watch{Rule: Rule{Name: row.Rule}} // its end is about to be told
		}
		a := Alert{
			Rule: row.Rule, Type: w.Type, Severity: w.Severity, Subject: row.Subject, Title: w.Subject(row.Subject), State: StatePending, Text: row.Text,
			Value: row.Value, Since: row.BadSince.UTC(), FiringSince: utc(row.FiringSince), GoodSince: utc(row.GoodSince), NoticedAt: utc(row.NoticedAt),
			Notices: row.Notices, Channels: row.Told, MutedUntil: mutedUntil(status.Mutes, row.Rule, row.Subject),
		}
		if row.FiringSince != nil {
			a.State = StateFiring
			w.Firing++
		} else {
			w.Pending++
		}
		status.Alerts = append(status.Alerts, a)
	}
	slices.SortStableFunc(status.Alerts, func(a, b Alert) int {
		return cmp.Or(cmp.Compare(a.State, b.State), // firing comes before pending
			cmp.Compare(slices.Index(severities(), b.Severity), slices.Index(severities(), a.Severity)),
			b.Since.Compare(a.Since), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Subject, b.Subject))
	})
}

// mutedUntil is how long something is muted; nil: it is not.
func mutedUntil(mutes []Mute, rule, subject string) (until *time.Time) {
	for i := range mutes {
		m := &mutes[i]
		if (m.Rule == Any || m.Rule == rule) && (m.Subject == Any || m.Subject == subject) && (until == nil || m.Until.After(*until)) {
			until = &m.Until
		}
	}
	return until
}

// Mute keeps notices of a rule, a subject, or both from being sent until a time. One that is there is changed. By is who asks. Errors:
// [ErrNotFound] if there is no such rule, an [*InputError].
func (s *Store) Mute(ctx context.Context, by string, m Mute) (Mute, error) {
	m.Rule, m.Subject = cmp.Or(m.Rule, Any), cmp.Or(m.Subject, Any)
	if len(m.Subject) > 500 || len(m.Reason) > 500 || strings.Contains(m.Subject+m.Reason, "\x00") {
		return m, &InputError{errors.New("a subject and a reason have up to 500 bytes")}
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		t, p, err := s.published(ctx, tx, "turn")
		if err != nil {
			return err
		}
		if m.Rule != Any && p.rule(m.Rule) == nil {
			return unknown("rule", m.Rule, ruleNames(p.Rules))
		}
		if !m.Until.After(t.Now) {
			return &InputError{fmt.Errorf("until is %s, which is past", m.Until.UTC().Format(time.RFC3339))}
		}
		before, err := all[Mute](ctx, s, tx, "lock_mute", m.Rule, m.Subject)
		if err != nil {
			return err
		}
		put, err := all[Mute](ctx, s, tx, "put_mute", m.Rule, m.Subject, m.Until, by, m.Reason)
		if err != nil {
			return err
		}
		m = put[0].utc()
		return s.audit(ctx, tx, by, "alert.mute", m.Rule+"/"+m.Subject, encode(first(before)), encode(&m))
	})
	return m, err
}

// Unmute ends a mute. The error is [ErrNotFound] if there is none of just this rule and subject.
func (s *Store) Unmute(ctx context.Context, by, rule, subject string) error {
	rule, subject = cmp.Or(rule, Any), cmp.Or(subject, Any)
	return s.tx(ctx, func(tx pgx.Tx) error {
		gone, err := all[Mute](ctx, s, tx, "drop_mute", rule, subject)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return fmt.Errorf("mute of rule %s, subject %s: %w", rule, subject, ErrNotFound)
		}
		return s.audit(ctx, tx, by, "alert.unmute", rule+"/"+subject, encode(&gone[0]), nil)
	})
}

// Publish puts the rules of a file, or those that are built in, in force for all processes, unless they are already. It tells whether it changed anything. The
// audit has the rules that were in force and those that are, without the addresses of channels.
func (s *Store) Publish(ctx context.Context, by string, f *File) (changed bool, err error) {
	text, err := f.publish()
	if err != nil {
		return false, err
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		t, _, err := s.published(ctx, tx, "lock_turn")
		if err != nil {
			return err
		}
		if string(t.Rules) == string(text) {
			return nil
		}
		var source *string
		if !f.BuiltIn {
			source = &f.Path
		}
		changed = true
		var before *string
		if len(t.Rules) > 0 {
			before = new(string(t.Rules))
		}
		if _, err := sqlfile.Exec(ctx, s.sql, tx, "publish", by, source, string(text)); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, "alert.publish", cmp.Or(f.Path, "built in"), before, new(string(text)))
	})
	return changed, err
}

// Test enqueues a notice to a channel. By is who asks. The error is [ErrNotFound] if no such channel is in force.
func (s *Store) Test(ctx context.Context, by string, queue *jobs.Client, channel string) (job int64, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		t, p, err := s.published(ctx, tx, "turn")
		if err != nil {
			return err
		}
		if _, known := p.Channels[channel]; !known {
			return unknown("channel", channel, p.channelNames())
		}
		n := newNotice(&Rule{Name: "test", Severity: Info}, draft{event: Test, states: []state{{
			Subject: everything, BadSince: t.Now, Text: "if you read this, the channel works",
		}}}, channel, p.title(s.schema, t.Database), t.Now)
		result, err := queue.InsertTx(ctx, tx, n, insertOpts(p.Queue))
		if err != nil {
			return err
		}
		job = result.Job.ID
		return s.audit(ctx, tx, by, "alert.test", "channel "+channel, nil, new(fmt.Sprintf(`{"job": %d}`, job)))
	})
	return job, err
}

// insertOpts are those of all notices.
func insertOpts(queue string) *river.InsertOpts {
	return &river.InsertOpts{Queue: queue, Priority: 1, MaxAttempts: maxAttempts}
}

// unknown says that there is no such thing, and what may have been meant.
func unknown(what, word string, known []string) error {
	return fmt.Errorf("%s %q: %w%s", what, word, ErrNotFound, hint(word, known))
}

func ruleNames(rules []Rule) []string {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].Name
	}
	return names
}

// published reads the row of alert_turn by a statement, and what it says. It is empty if somebody else has locked it.
func (s *Store) published(ctx context.Context, db sqlfile.DB, statement string) (*turn, published, error) {
	rows, err := all[turn](ctx, s, db, statement)
	if err != nil || len(rows) == 0 {
		return nil, published{}, err
	}
	p, err := readPublished(rows[0].Rules)
	if err != nil {
		return nil, p, fmt.Errorf("rules in force: %w", err)
	}
	return &rows[0], p, nil
}

// tx runs fn in a READ COMMITTED transaction that waits for a lock for at most a while, and commits if it returns nil.
func (s *Store) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '40s'; SET LOCAL idle_in_transaction_session_timeout = '10s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

func (s *Store) audit(ctx context.Context, db sqlfile.DB, by, action, target string, before, after *string) error {
	_, err := sqlfile.Exec(ctx, s.sql, db, "audit", jobs.Audited(ctx, by), action, target, before, after)
	return err
}

func encode(m *Mute) *string {
	if m == nil {
		return nil
	}
	b, err := json.Marshal(map[string]any{"until": m.Until.UTC(), "reason": m.Reason})
	if err != nil {
		return nil // not reached: a time and a text
	}
	return new(string(b))
}

func first(list []Mute) *Mute {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// all reads rows into structs by position.
func all[T any](ctx context.Context, s *Store, db sqlfile.DB, statement string, args ...any) ([]T, error) {
	args = append([]any{pgx.QueryExecModeCacheDescribe}, args...)
	return sqlfile.Rows(ctx, s.sql, db, pgx.RowToStructByPos[T], statement, args...)
}
