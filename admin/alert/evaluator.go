package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

const (
	evaluationTimeout = 40 * time.Second
	// readingTime is how long an evaluation reads; what it has not read by then stays as it is.
	readingTime = 15 * time.Second
	// rest is how many times as long as an evaluation took the next one waits at least, so that alerts load the database by a twentieth
	// of one connection; within bounds, since it must be known that something is bad.
	rest    = 20
	maxRest = 45 * time.Second
)

// Config says how an Evaluator works.
type Config struct {
	// Schema is the Postgres schema. Defaults to "pelton".
	Schema string

	// File is what is put in force at the start; nil: what is in force stays, and if that is nothing, what is built in.
	File *File

	// Lost tells how many jobs are in no place, if that is known in this process. May be nil.
	Lost func() (jobs int, known bool)

	// Logger defaults to slog's default logger.
	Logger *slog.Logger
}

// Evaluator evaluates the rules in force again and again, if nobody else does.
type Evaluator struct {
	store   *Store
	queue   *jobs.Client
	config  Config
	log     *slog.Logger
	loop    *service.Service
	brought bool // the file is in force, or was
	every   time.Duration
	runs    int // how many a failure rate is made of at most

	hasTime func(began time.Time) bool // tells whether an evaluation may read one more rule

	failpoint func(step string) error // tests stop an evaluation here
}

// NewEvaluator makes an evaluator on a pool, which stays the caller's. Its notices are enqueued by a client, which need not be started.
func NewEvaluator(pool *pgxpool.Pool, queue *jobs.Client, config Config) (*Evaluator, error) {
	store, err := NewStore(pool, config.Schema)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{
		store: store, queue: queue, config: config, log: cmp.Or(config.Logger, slog.Default()), brought: config.File == nil,
		every: time.Duration(defaultEvery), runs: maxRuns, failpoint: func(string) error { return nil },
		hasTime: func(began time.Time) bool { return time.Since(began) <= readingTime },
	}
	e.loop = service.New(e.run)
	return e, nil
}

// Start starts to evaluate and returns. Starting twice does no harm.
func (e *Evaluator) Start(ctx context.Context) { e.loop.Start(ctx) }

// Stop ends what Start began, and waits for it.
func (e *Evaluator) Stop() { e.loop.Stop() }

func (e *Evaluator) run(ctx context.Context) {
	for {
		began := time.Now()
		if _, err := e.evaluate(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "alerts: the rules could not be evaluated; trying again", "error", err)
		}
		if !service.Sleep(ctx, max(e.every, min(rest*time.Since(began), maxRest))) {
			return
		}
	}
}

// evaluate evaluates the rules, unless somebody else does or just has, and tells whether it did.
func (e *Evaluator) evaluate(ctx context.Context) (did bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, evaluationTimeout)
	defer cancel()
	if !e.brought {
		changed, err := e.store.Publish(ctx, e.queue.ID(), e.config.File)
		if err != nil {
			return false, fmt.Errorf("put %s in force: %w", e.config.File.Path, err)
		}
		if e.brought = true; changed {
			e.log.InfoContext(ctx, "alerts: rules put in force", "file", e.config.File.Path, "rules", len(e.config.File.Rules))
		}
	}
	err = pgx.BeginTxFunc(ctx, e.store.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, e.store.sql.Get("limits")); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
		t, p, err := e.store.published(ctx, tx, "take_turn")
		if err != nil || t == nil {
			return err
		}
		e.every = time.Duration(p.Every)
		if t.EvaluatedAt != nil && t.Now.Sub(*t.EvaluatedAt) < e.every*4/5 {
			return nil
		}
		did = true
		v := &evaluation{e: e, tx: tx, turn: t, published: &p}
		return v.run(ctx)
	})
	return did && err == nil, err
}

// evaluation is one transaction that evaluates the rules: what changes and the notices of it are one.
type evaluation struct {
	e         *Evaluator
	tx        pgx.Tx
	turn      *turn
	published *published

	mutes   []Mute
	rules   map[string]ruleRow
	states  map[string][]state
	notices []river.InsertManyParams
}

func (v *evaluation) run(ctx context.Context) error {
	if err := v.load(ctx); err != nil {
		return err
	}
	rd := &reader{tx: v.tx, sql: v.e.store.sql, now: v.turn.Now, queue: v.published.Queue, schema: v.e.store.schema, lost: v.e.config.Lost, runs: v.e.runs}
	began := time.Now()
	for _, r := range v.inTurn() {
		if err := v.one(ctx, rd, r, !v.e.hasTime(began)); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	if err := v.removed(ctx); err != nil {
		return err
	}
	if err := v.e.failpoint("decided"); err != nil {
		return err
	}
	if len(v.notices) > 0 {
		if _, err := v.e.queue.InsertManyTx(ctx, v.tx, v.notices); err != nil {
			return fmt.Errorf("enqueue notices: %w", err)
		}
	}
	if err := v.e.failpoint("enqueued"); err != nil {
		return err
	}
	_, err := sqlfile.Exec(ctx, v.e.store.sql, v.tx, "end_turn", v.turn.Now, v.e.queue.ID())
	return err
}

func (v *evaluation) load(ctx context.Context) (err error) {
	s := v.e.store
	if v.mutes, err = all[Mute](ctx, s, v.tx, "mutes", v.turn.Now, nil, nil, nil); err != nil {
		return err
	}
	rules, err := all[ruleRow](ctx, s, v.tx, "rules")
	if err != nil {
		return err
	}
	v.rules = map[string]ruleRow{}
	for _, r := range rules {
		v.rules[r.Rule] = r
	}
	states, err := all[stateRow](ctx, s, v.tx, "states", nil)
	if err != nil {
		return err
	}
	v.states = map[string][]state{}
	for _, row := range states {
		v.states[row.Rule] = append(v.states[row.Rule], row.state)
	}
	return nil
}

// inTurn are the rules in the order in which they are read: first those for which the last evaluations had no time left, whoever made them, so that none waits
// for ever behind others that take long.
func (v *evaluation) inTurn() []*Rule {
	rules := make([]*Rule, len(v.published.Rules))
	for i := range rules {
		rules[i] = &v.published.Rules[i]
	}
	waitsSince := func(r *Rule) int64 {
		if known := v.rules[r.Name]; known.FaultAt != nil && deref(known.Fault) == noTimeLeft {
			return known.FaultAt.UnixMicro()
		}
		return math.MaxInt64
	}
	slices.SortStableFunc(rules, func(a, b *Rule) int { return cmp.Compare(waitsSince(a), waitsSince(b)) })
	return rules
}

// noTimeLeft is the fault of a rule that is read first the next time.
const noTimeLeft = "there was no time left to read it"

// one evaluates one rule. One that cannot be read leaves its states as they are, and does not hold up the others.
func (v *evaluation) one(ctx context.Context, rd *reader, r *Rule, late bool) error {
	found, fault := readings{}, noTimeLeft
	if !late {
		err := pgx.BeginFunc(ctx, v.tx, func(pgx.Tx) (err error) {
			found, err = rd.read(ctx, r)
			return err
		})
		switch {
		case ctx.Err() != nil || v.tx.Conn().IsClosed():
			return cmp.Or(err, ctx.Err())
		case errors.Is(err, errUnknown):
			return nil
		case err != nil:
			fault = err.Error()
			v.e.log.WarnContext(ctx, "alerts: a rule cannot be read", "rule", r.Name, "error", err)
		default:
			fault = ""
		}
	}
	known := v.rules[r.Name]
	if fault != "" {
		return v.note(ctx, r.Name, nil, &fault)
	}
	out := decide(r, v.states[r.Name], found, v.circumstances(r.Name, known.NoticedAt))
	var noticed *time.Time
	if len(out.notices) > 0 {
		noticed = &v.turn.Now
	}
	if noticed != nil || known.Fault != nil {
		if err := v.note(ctx, r.Name, noticed, nil); err != nil {
			return err
		}
	}
	return v.apply(ctx, r, out)
}

func (v *evaluation) circumstances(rule string, noticed *time.Time) circumstances {
	return circumstances{
		now: v.turn.Now, noticedAt: noticed, channels: v.published.channelNames(),
		muted: func(subject string) bool { return mutedUntil(v.mutes, rule, subject) != nil },
	}
}

func (v *evaluation) note(ctx context.Context, rule string, noticed *time.Time, fault *string) error {
	_, err := v.exec(ctx, "put_rule", rule, noticed, v.turn.Now, fault)
	return err
}

func (v *evaluation) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	return sqlfile.Exec(ctx, v.e.store.sql, v.tx, statement, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}

// apply stores what an evaluation of a rule changes, and gathers its notices.
func (v *evaluation) apply(ctx context.Context, r *Rule, out outcome) error {
	if len(out.drop) > 0 {
		if _, err := v.exec(ctx, "drop_states", r.Name, out.drop); err != nil {
			return err
		}
	}
	if len(out.put) > 0 {
		text, err := json.Marshal(out.put)
		if err != nil {
			return err
		}
		if _, err := v.exec(ctx, "put_states", r.Name, string(text)); err != nil {
			return err
		}
	}
	title := v.published.title(v.e.store.schema, v.turn.Database)
	for _, d := range out.notices {
		for _, channel := range d.channels {
			n := newNotice(r, d, channel, title, v.turn.Now)
			v.notices = append(v.notices, river.InsertManyParams{Args: n, InsertOpts: insertOpts(v.published.Queue)})
		}
	}
	return nil
}

// removed ends what is left of rules that are no longer there.
func (v *evaluation) removed(ctx context.Context) error {
	names := ruleNames(v.published.Rules)
	for _, rule := range sortedKeys(v.states) {
		if slices.Contains(names, rule) {
			continue
		}
		if err := v.apply(ctx, &Rule{Name: rule}, removed(v.states[rule], v.circumstances(rule, nil))); err != nil {
			return fmt.Errorf("rule %s, which is no longer there: %w", rule, err)
		}
	}
	if len(v.rules) == 0 {
		return nil
	}
	_, err := v.exec(ctx, "drop_rules", names)
	return err
}
