package periodic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/periodic/internal/store"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Limits of backfills.
const (
	MaxBackfillTicks    = 100_000
	MaxBackfillParallel = 1000
)

// BackfillParams say which ticks of the past are to run.
type BackfillParams struct {
	From, To time.Time // both included
	All      bool      // also ticks that have run; otherwise those that have not
	Parallel int       // runs at a time, 1 to MaxBackfillParallel; defaults to 1
}

// BackfillStatus says how a backfill stands.
type BackfillStatus string

// The statuses of backfills.
const (
	BackfillRunning   BackfillStatus = store.BackfillRunning
	BackfillCompleted BackfillStatus = store.BackfillCompleted
	BackfillCancelled BackfillStatus = store.BackfillCancelled
)

// Backfill is a backfill, and how far it is.
type Backfill struct {
	ID         int64          `json:"id"`
	Schedule   string         `json:"schedule"`
	CreatedAt  time.Time      `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	EndedAt    *time.Time     `json:"ended_at"`
	From       time.Time      `json:"from"`
	To         time.Time      `json:"to"`
	Parallel   int            `json:"parallel"`
	OnlyMissed bool           `json:"only_missed"`
	Status     BackfillStatus `json:"status"`
	Total      int            `json:"total"` // ticks in the range when it was asked for
	Started    int            `json:"started"`
	LeftOut    int            `json:"left_out"`    // had run already, or could not be started
	NotStarted int            `json:"not_started"` // of those left out: could not be started
	Why        string         `json:"why"`         // why the last of these could not
	Succeeded  int            `json:"succeeded"`
	Failed     int            `json:"failed"` // runs that ended otherwise
	Live       int            `json:"live"`   // runs that have not ended, or are not yet counted
}

func backfillOf(r *store.BackfillRow) Backfill {
	return Backfill{
		ID: r.ID, Schedule: r.Schedule, CreatedAt: r.CreatedAt.UTC(), CreatedBy: r.CreatedBy, EndedAt: utc(r.EndedAt), From: r.From.UTC(), To: r.To.UTC(),
		Parallel: r.Parallel, OnlyMissed: r.OnlyMissed, Status: BackfillStatus(r.Status), Total: r.Total, Started: r.Started, LeftOut: r.LeftOut,
		Succeeded: r.Succeeded, Failed: r.Failed, Live: r.Live,
		NotStarted: r.NotStarted, Why: text(r.Why),
	}
}

// Backfill has ticks of the past run, in order, at most so many at a time: a scheduler does it. Refused are ranges that end before they begin or in the future,
// hold no tick, or more than MaxBackfillTicks.
func (c *Client) Backfill(ctx context.Context, name string, p BackfillParams) (*Backfill, error) {
	if err := c.settleFirst(ctx, name); err != nil { // what the clock has yet to decide is not the backfill's
		return nil, err
	}
	return answer(ctx, c.operate, func(v *verb) (*Backfill, error) { return v.backfill(ctx, name, p) })
}

// BackfillTx is Backfill when the caller's transaction commits.
func (c *Client) BackfillTx(ctx context.Context, tx pgx.Tx, name string, p BackfillParams) (*Backfill, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Backfill, error) { return v.backfill(ctx, name, p) })
}

// InvalidBackfillError says what is wrong with a backfill. Nothing was stored.
type InvalidBackfillError struct {
	Schedule string
	Err      error
}

func (e *InvalidBackfillError) Error() string {
	return fmt.Sprintf("backfill of schedule %q: %v", e.Schedule, e.Err)
}
func (e *InvalidBackfillError) Unwrap() error { return e.Err }

func (v *verb) backfill(ctx context.Context, name string, p BackfillParams) (*Backfill, error) {
	if p.Parallel == 0 {
		p.Parallel = 1
	}
	s, err := v.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if s, err = v.settle(ctx, s); err != nil {
		return nil, fmt.Errorf("backfill of schedule %q: %w", name, err)
	}
	p.From, p.To = p.From.Truncate(time.Microsecond), p.To.Truncate(time.Microsecond)
	if err := p.check(s.now); err != nil {
		return nil, &InvalidBackfillError{name, err}
	}
	if decided := s.due.State.Decided; !s.Paused && decided.Before(p.To) && !s.due.State.Next.IsZero() && !s.due.State.Next.After(p.To) {
		p.To = s.due.State.Next.Add(-time.Microsecond) // that tick is put off by spread or jitter, and still to come
	}
	if start := s.schedule.schedule.StartAt; start != nil && start.After(p.From) {
		p.From = *start
	}
	if end := s.schedule.spec.End; !end.IsZero() && end.Before(p.To) {
		p.To = end
	}
	total, err := s.countTicks(p.From, p.To)
	if err != nil {
		return nil, &InvalidBackfillError{name, err}
	}
	b := store.Backfill{Schedule: s.schedule.id, From: p.From, To: p.To, Parallel: p.Parallel, OnlyMissed: !p.All}
	id, err := v.c.store.AddBackfill(ctx, v.tx, b, total, v.c.jobs.Actor(ctx))
	if err != nil {
		return nil, err
	}
	made, err := v.c.backfillByID(ctx, v.tx, id)
	if err != nil {
		return nil, err
	}
	return made, v.audit(ctx, "backfill", name, nil, made)
}

func (p *BackfillParams) check(now time.Time) error {
	switch {
	case p.From.IsZero() || p.To.IsZero():
		return errors.New("it needs a first and a last time")
	case p.To.Before(p.From):
		return fmt.Errorf("it ends at %s, before it begins at %s", p.To.Format(time.RFC3339), p.From.UTC().Format(time.RFC3339))
	case p.To.After(now):
		return fmt.Errorf("%s is in the future: the schedule itself runs what is to come", p.To.Format(time.RFC3339))
	case p.Parallel < 1 || p.Parallel > MaxBackfillParallel:
		return fmt.Errorf("%d runs at a time: want 1 to %d", p.Parallel, MaxBackfillParallel)
	}
	return nil
}

// countTicks counts the ticks of a range that may run.
func (s *subject) countTicks(from, to time.Time) (n int, err error) {
	defer s.recover(&err)
	if s.schedule.spec.Ticks == nil {
		return 0, errors.New("a fixed delay has no ticks of the past: they came after the ends of runs")
	}
	for t := range s.schedule.spec.Ticks.All(tick.After(from.Add(-time.Microsecond))) {
		if t.At.After(to) {
			break
		}
		if !t.Runs() {
			continue
		}
		if n++; n > MaxBackfillTicks {
			return 0, fmt.Errorf("more than %d ticks: ask for a part of the range", MaxBackfillTicks)
		}
	}
	if n == 0 {
		return 0, errors.New("there is no tick in the range")
	}
	return n, nil
}

// BackfillListParams say which backfills to list. Zero fields ask for nothing.
type BackfillListParams struct {
	Schedule string // of this one
	Before   int64  // continue a list: the number of its last backfill
	Limit    int    // 1 to 10,000; defaults to 100
}

// Backfills lists backfills, the newest first. A page that has Limit of them may have another behind it, Before the last one's number. ErrNotFound: there is no such
// schedule.
func (c *Client) Backfills(ctx context.Context, p BackfillListParams) ([]Backfill, error) {
	if p.Schedule != "" {
		if _, err := c.Get(ctx, p.Schedule); err != nil {
			return nil, err
		}
	}
	limit, err := checkLimit(p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list backfills: %w", err)
	}
	rows, err := c.store.Backfills(ctx, c.store.Pool, p.Schedule, 0, p.Before, limit)
	if err != nil {
		return nil, fmt.Errorf("list backfills: %w", err)
	}
	list := make([]Backfill, len(rows))
	for i := range rows {
		list[i] = backfillOf(&rows[i])
	}
	return list, nil
}

// BackfillGet reads a backfill. ErrNotFound if there is none of that number.
func (c *Client) BackfillGet(ctx context.Context, id int64) (*Backfill, error) {
	return c.backfillByID(ctx, c.store.Pool, id)
}

func (c *Client) backfillByID(ctx context.Context, db store.DB, id int64) (*Backfill, error) {
	var rows []store.BackfillRow
	if id > 0 { // 0 would be any
		var err error
		if rows, err = c.store.Backfills(ctx, db, "", id, 0, 1); err != nil {
			return nil, fmt.Errorf("backfill %d: %w", id, err)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("there is no backfill %d (%w)", id, ErrNotFound)
	}
	b := backfillOf(&rows[0])
	return &b, nil
}

// BackfillCancel has a backfill start no more runs; those that run go on, and are still counted. One that has ended stays as it is.
func (c *Client) BackfillCancel(ctx context.Context, id int64) (*Backfill, error) {
	return answer(ctx, c.operate, func(v *verb) (*Backfill, error) { return v.cancelBackfill(ctx, id) })
}

// BackfillCancelTx cancels a backfill when the caller's transaction commits.
func (c *Client) BackfillCancelTx(ctx context.Context, tx pgx.Tx, id int64) (*Backfill, error) {
	return answer(ctx, c.within(tx), func(v *verb) (*Backfill, error) { return v.cancelBackfill(ctx, id) })
}

func (v *verb) cancelBackfill(ctx context.Context, id int64) (*Backfill, error) {
	was, err := v.c.backfillByID(ctx, v.tx, id)
	if err != nil {
		return nil, err
	}
	b, err := v.c.store.LockBackfill(ctx, v.tx, id)
	if err != nil || b == nil {
		return was, err
	}
	if b.Status == store.BackfillRunning {
		at := time.Duration(0)
		if err := v.c.store.WriteBackfill(ctx, v.tx, id, store.Progress{Decided: b.Decided, Status: store.BackfillCancelled, Again: &at}); err != nil {
			return nil, err
		}
		if err := v.audit(ctx, "backfill.cancel", was.Schedule, was, nil); err != nil {
			return nil, err
		}
	}
	return v.c.backfillByID(ctx, v.tx, id)
}

// BackfillEnded waits until a backfill has ended, or ctx has, and returns it; changed, if not nil, is told of it at each look.
func (c *Client) BackfillEnded(ctx context.Context, id int64, changed func(*Backfill)) (*Backfill, error) {
	var b *Backfill
	for {
		now, err := c.BackfillGet(ctx, id)
		if err != nil {
			return b, err
		}
		b = now
		if changed != nil {
			changed(b)
		}
		if b.Status != BackfillRunning {
			return b, nil
		}
		if !service.Sleep(ctx, backfillLook) {
			return b, context.Cause(ctx)
		}
	}
}

const (
	backfillLook  = 200 * time.Millisecond // between two looks of who waits for a backfill
	backfillTicks = 1000                   // of one backfill in a transaction
	firstCount    = 50 * time.Millisecond  // between two looks at its runs: a fiftieth of the time that the oldest runs, within these bounds
	lastCount     = 5 * time.Second

	backfillPutOff = 5 * time.Second // of one that could not be advanced
)

// backfiller advances backfills. Any number of them may work at once.
type backfiller struct {
	c    *Client
	loop *service.Service
	hint chan struct{}
}

func newBackfiller(c *Client) *backfiller {
	b := &backfiller{c: c, hint: make(chan struct{}, 1)}
	b.loop = service.New(b.run)
	return b
}

func (b *backfiller) nudge() { tell(b.hint) }

func (b *backfiller) run(ctx context.Context) {
	for ctx.Err() == nil {
		wait, err := b.once(ctx)
		if err != nil {
			b.c.log.WarnContext(ctx, "advance backfills; trying again", "error", err)
			wait = service.Jitter(time.Second)
		}
		rest(ctx, wait, b.hint)
	}
}

// once advances the first backfill that is due. A stop waits for its end.
func (b *backfiller) once(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fireTimeout)
	defer cancel()
	in, some, err := b.c.store.BackfillDue(ctx, b.c.firer.codes)
	if err != nil || !some {
		return b.c.config.look, err
	}
	if in > 0 {
		return min(in, b.c.config.look), nil
	}
	var after aftermath
	var id int64
	err = b.c.store.Tx(ctx, store.Limits{Lock: time.Second}, func(tx pgx.Tx) error {
		id, after, err = b.advance(ctx, tx)
		return err
	})
	if err != nil {
		after.ticks = nil // nothing was stored
	}
	b.c.firer.finish(ctx, after)
	switch {
	case id == 0 && err == nil: // somebody else is at it
		return fireBusy, nil
	case id == 0 || err == nil || b.c.firer.lost(ctx, err):
		return 0, err
	}
	b.c.log.WarnContext(ctx, "a backfill could not be advanced and is put off", "backfill", id, "error", err)
	return 0, b.c.store.PutOffBackfill(ctx, id, backfillPutOff)
}

// advance advances the first backfill that is due, and returns which. 0: all that are due are held by others.
func (b *backfiller) advance(ctx context.Context, tx pgx.Tx) (int64, aftermath, error) {
	id, schedule, err := b.c.store.NextBackfill(ctx, tx, b.c.firer.codes)
	if err != nil || id == 0 {
		return 0, aftermath{}, err
	}
	row, err := b.c.store.LockBackfill(ctx, tx, id)
	if err != nil || row == nil || row.Wake == nil {
		return id, aftermath{}, err
	}
	dues, err := b.c.store.Lock(ctx, tx, schedule)
	if err != nil || len(dues) == 0 {
		return id, aftermath{}, err
	}
	v := &verb{c: b.c, tx: tx}
	s, err := v.read(ctx, dues[0])
	if err != nil || row.Wake.After(s.now) { // another process was quicker
		return id, aftermath{}, err
	}
	after, err := v.advance(ctx, s, row)
	return id, after, err
}

// advance counts the runs of a backfill that have ended, and starts the next ones.
func (v *verb) advance(ctx context.Context, s *held, row *store.Backfill) (aftermath, error) {
	p := store.Progress{Decided: row.Decided, Status: row.Status}
	live, since, err := v.count(ctx, s, row.ID, &p)
	if err != nil {
		return aftermath{}, err
	}
	var after aftermath
	over := row.Status != store.BackfillRunning
	if !over && live < row.Parallel {
		next, err := v.nextTicks(ctx, s, row)
		if err != nil {
			return aftermath{}, err
		}
		var begun int
		if begun, after, err = v.startNext(ctx, s, row, next, row.Parallel-live, &p); err != nil {
			return aftermath{}, err
		}
		live += begun
		over = next.last && p.Decided.Equal(row.To)
	}
	switch {
	case over && live == 0:
		if p.Status == store.BackfillRunning {
			p.Status = store.BackfillCompleted
		}
	case live > 0 && (over || live >= row.Parallel):
		again := min(lastCount, max(firstCount, since/50))
		p.Again = &again
	default:
		again := time.Duration(0)
		p.Again = &again
	}
	return after, v.c.store.WriteBackfill(ctx, v.tx, row.ID, p)
}

// count counts runs that have ended, and returns how many have not, and for how long the oldest of them has been there.
func (v *verb) count(ctx context.Context, s *held, id int64, p *store.Progress) (live int, since time.Duration, err error) {
	runs, err := v.c.store.BackfillLive(ctx, v.tx, id)
	if err != nil {
		return 0, 0, err
	}
	var ended []time.Time
	for _, r := range runs {
		switch {
		case !r.Ended:
			live++
			if r.Since != nil {
				since = max(since, s.now.Sub(*r.Since))
			}
			continue
		case r.Well:
			p.Succeeded++
		default:
			p.Failed++
		}
		ended = append(ended, r.Tick)
	}
	if len(ended) == 0 {
		return live, since, nil
	}
	return live, since, v.c.store.Counted(ctx, v.tx, id, ended)
}

// next are the next ticks of a backfill.
type next struct {
	ticks []tick.Tick
	seen  map[time.Time]store.TickSeen
	last  bool // there are no more
}

// nextTicks reads the next ticks of a backfill, and what became of them.
func (v *verb) nextTicks(ctx context.Context, s *held, row *store.Backfill) (n next, err error) {
	defer s.recover(&err)
	n.last = true
	var times []time.Time
	for t := range s.schedule.spec.Ticks.All(tick.After(row.Decided)) {
		if t.At.After(row.To) {
			break
		}
		if !t.Runs() {
			continue
		}
		if len(n.ticks) == backfillTicks {
			n.last = false
			break
		}
		n.ticks = append(n.ticks, t)
		times = append(times, t.At)
	}
	seen, err := v.c.store.TicksSeen(ctx, v.tx, s.schedule.id, times)
	if err != nil {
		return n, err
	}
	n.seen = make(map[time.Time]store.TickSeen, len(seen))
	for _, k := range seen {
		n.seen[k.At.UTC()] = k
	}
	return n, nil
}

// startNext starts at most so many of the next ticks, in order, and returns how many it started.
func (v *verb) startNext(ctx context.Context, s *held, row *store.Backfill, n next, room int, p *store.Progress) (int, aftermath, error) {
	d := &decided{subject: s.subject}
	for i := range n.ticks {
		at := n.ticks[i].At
		known := n.seen[at.UTC()]
		if row.OnlyMissed && (known.Fired || at.Equal(s.due.State.Waiting)) { // one that waits was not missed: it runs yet
			p.LeftOut++
			p.Decided = at
			continue
		}
		if len(d.starts) == room {
			n.last = false
			break
		}
		d.starts = append(d.starts, &start{at: at, tick: len(d.ticks)})
		t := d.row(n.ticks[i])
		t.N, t.Source, t.Outcome, t.Backfill = known.LastN+1, store.SourceBackfill, store.Fired, row.ID
		d.ticks = append(d.ticks, t)
		p.Decided = at
	}
	if n.last {
		p.Decided = row.To
	}
	if len(d.starts) == 0 {
		return 0, aftermath{}, nil
	}
	after, err := v.c.startOnly(ctx, v.tx, d)
	if err != nil {
		return 0, aftermath{}, err
	}
	var begun []store.Tick
	for i := range d.ticks {
		if t := &d.ticks[i]; t.Outcome == store.Fired {
			begun = append(begun, *t)
			p.Started++
		} else {
			p.LeftOut++
			if t.Outcome == store.Failed {
				p.NotStarted++
				p.Why = t.Note
			}
		}
	}
	if len(begun) == 0 {
		return 0, after, nil
	}
	return len(begun), after, v.c.store.Begun(ctx, v.tx, row.ID, begun)
}

// startOnly starts what a decision starts and writes its ticks; where the schedule is stays as it was.
func (c *Client) startOnly(ctx context.Context, tx pgx.Tx, d *decided) (aftermath, error) {
	if err := c.startJobs(ctx, tx, []*decided{d}); err != nil {
		return aftermath{}, err
	}
	after, err := c.startFlows(ctx, tx, []*decided{d})
	if err != nil {
		return aftermath{}, err
	}
	if d.putOff != nil {
		return aftermath{}, fmt.Errorf("a backfill of schedule %q: %w", d.schedule.name, d.putOff)
	}
	for i := range d.ticks {
		after.add(&d.ticks[i], d.now)
	}
	return after, c.store.WriteTicks(ctx, tx, d.ticks)
}
