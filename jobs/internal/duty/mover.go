package duty

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	moveBatch   = 1000                   // jobs in one transaction
	moveBusy    = 25 * time.Millisecond  // until the next look when others hold what is due
	moveRefresh = 200 * time.Millisecond // between two looks at the floor while jobs move
	moveHinted  = 100 * time.Millisecond // between two looks that hints ask for
	moveAlert   = time.Second            // between two looks while jobs come and go
	alertFor    = 10 * time.Second       // since the last of them
	moveAlarm   = 250 * time.Millisecond // between two looks in the first second of it
	alarmFor    = time.Second
	keyPause    = time.Second // a job whose unique key is just being inserted waits so long
	faultPause  = time.Minute // and one that cannot be moved
)

// Mover puts scheduled jobs into the line when their time has come.
type Mover struct {
	store *store.Store
	log   *slog.Logger
	look  time.Duration // longest time between two looks
	floor *floor.Tracker
	hint  bool
	moved func(n int) // told of every batch
	drawn func()      // told when tickets entered the line since it was marked: saves the marker looks of its own

	expected  atomic.Bool // by Expect, since the last look
	alert     time.Time   // when jobs last came or went
	refreshed time.Time
	checked   time.Time
	unchecked bool // jobs moved since the last look below the floor
}

func newMover(st *store.Store, c Config, moved func(n int), drawn func()) *Mover {
	return &Mover{
		store: st, log: c.Log, look: c.MoveLook, hint: !c.NotifyOff, moved: moved, drawn: drawn, checked: time.Now(),
		floor: floor.NewTracker(st.Schema, floor.Scheduled, func(n int) { c.BelowMark(string(floor.Scheduled), n) }),
	}
}

// Expect tells that jobs are being scheduled. May be called by anyone.
func (m *Mover) Expect() { m.expected.Store(true) }

// Step moves one batch, and says when the next job is due.
func (m *Mover) Step(ctx context.Context) (time.Duration, error) {
	if m.expected.Swap(false) {
		m.alert = time.Now()
	}
	next, err := m.store.NextDue(ctx, m.floor.Floor())
	if err != nil {
		return 0, err
	}
	if err := m.keepFloor(ctx, next.Newest); err != nil {
		return 0, err
	}
	if next.Drawn {
		m.drawn()
	}
	look := m.look
	switch since := time.Since(m.alert); {
	case since < alarmFor:
		look = min(look, moveAlarm)
	case since < alertFor:
		look = min(look, moveAlert)
	}
	if !next.Any {
		return look, nil
	}
	if next.In > 0 {
		return min(next.In, look), nil
	}
	n, err := m.Move(ctx)
	if err != nil || n == 0 {
		return moveBusy, err
	}
	m.unchecked, m.alert = true, time.Now()
	m.moved(n)
	return 0, nil
}

// keepFloor reads the floor when a row was published, or while jobs move, and looks below it about once a minute after some did.
func (m *Mover) keepFloor(ctx context.Context, newest int64) error {
	now := time.Now()
	if newest != m.floor.Newest() || m.unchecked && now.Sub(m.refreshed) >= moveRefresh {
		m.refreshed = now
		if err := m.floor.Refresh(ctx, m.store.Pool); err != nil {
			return err
		}
	}
	if m.unchecked && now.Sub(m.checked) >= time.Minute {
		m.checked, m.unchecked = now, false
		if _, err := m.floor.CheckBelow(ctx, m.store.Pool); err != nil {
			return err
		}
	}
	return nil
}

// Move moves one batch of due jobs in one transaction and returns how many. One that cannot be moved is put off, without the others.
func (m *Mover) Move(ctx context.Context) (int, error) {
	due, err := m.move(ctx, m.place)
	if store.RowFault(err) {
		due, err = m.move(ctx, m.placeApart)
	}
	if err != nil {
		return 0, fmt.Errorf("move due jobs: %w", err)
	}
	return len(due), m.store.DropVoids(ctx, voided(due))
}

func (m *Mover) move(
	ctx context.Context, place func(context.Context, pgx.Tx, []store.Due) error,
) (due []store.Due, err error) {
	err = m.store.Tx(ctx, store.MoveLimits, func(tx pgx.Tx) (err error) {
		due, err = m.store.TakeDue(ctx, tx, m.floor.Floor(), moveBatch)
		if err != nil || len(due) == 0 {
			return err
		}
		return place(ctx, tx, due)
	})
	return due, err
}

// placeApart is place under savepoints: a batch that fails for one of its jobs is halved, until that job is alone.
func (m *Mover) placeApart(ctx context.Context, tx pgx.Tx, due []store.Due) error {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return m.place(ctx, tx, due) })
	if !store.RowFault(err) {
		return err
	}
	if len(due) == 1 {
		m.log.ErrorContext(ctx, "a due job cannot be moved; it is tried again in a minute",
			"job_id", due[0].JobID, "run", due[0].Run, "error", err)
		return m.store.PutBack(ctx, tx, due[0], faultPause)
	}
	half := len(due) / 2
	if err := m.placeApart(ctx, tx, due[:half]); err != nil {
		return err
	}
	return m.placeApart(ctx, tx, due[half:])
}

// voided lists the runs whose voids were honoured.
func voided(due []store.Due) []store.Honoured {
	var list []store.Honoured
	for _, d := range due {
		if d.Void == state.Cancelled || d.Void == store.VoidDeleted {
			run := store.VoidedRun{JobID: d.JobID, Run: d.Run, Attempts: d.Attempts}
			list = append(list, store.Honoured{VoidedRun: run, Outcome: d.Void})
		}
	}
	return list
}

// place puts each of the jobs where it goes now.
func (m *Mover) place(ctx context.Context, tx pgx.Tx, due []store.Due) error {
	ids := make([]int64, len(due))
	for i, d := range due {
		ids[i] = d.JobID
	}
	facts, err := m.store.ReadFacts(ctx, tx, ids)
	if err != nil {
		return err
	}
	var entries []store.Entry
	var ends []store.Ended
	var keyed []keyedRun
	for _, d := range due {
		f, known := facts[d.JobID]
		switch {
		case d.Void == store.VoidDeleted: // nothing is left to do
		case d.Void == state.Cancelled:
			ends = append(ends, store.Ended{JobID: d.JobID, Run: d.Run, Attempt: d.Attempts, Outcome: string(state.Cancelled)})
		case !known:
			ends = append(ends, store.Ended{
				JobID: d.JobID, Run: d.Run, Attempt: d.Attempts + 1, Outcome: string(state.Discarded), Error: rowMissing,
			})
		case gaveUpKey(d, f):
			keyed = append(keyed, keyedRun{d, f})
		default:
			entries = append(entries, entry(d, f))
		}
	}
	again, err := m.retakeKeys(ctx, tx, keyed)
	if err != nil {
		return err
	}
	if len(ends) > 0 {
		if _, err := m.store.EndRuns(ctx, tx, 0, ends); err != nil {
			return err
		}
	}
	return m.store.LineUp(ctx, tx, append(entries, again...), store.MaxTicket, m.hint)
}

func entry(d store.Due, f store.Facts) store.Entry {
	return store.Entry{JobID: d.JobID, Run: d.Run, Attempts: d.Attempts, Line: f.Queue, Priority: f.Priority}
}
