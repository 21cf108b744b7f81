package duty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	reapBatch  = 500 // runs in one transaction
	leasesRead = 100 // leases read at once
)

// Reaper puts back what dead executors had taken.
type Reaper struct {
	store     *store.Store
	log       *slog.Logger
	observer  *Observer
	look      time.Duration
	lostLimit int
	hint      bool
	reaped    func(lost, discarded int)
}

func newReaper(st *store.Store, c Config) *Reaper {
	look := c.Lease / 3
	return &Reaper{
		store: st, log: c.Log, look: look, lostLimit: c.LostLimit, hint: !c.NotifyOff, reaped: c.Reaped,
		observer: NewObserver(c.Lease, max(2*look, 100*time.Millisecond)),
	}
}

// Step looks once, and reaps whom it finds dead.
func (r *Reaper) Step(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	beats, err := r.store.Beats(ctx)
	if err != nil {
		r.observer.Forget()
		return 0, err
	}
	var faults []error
	for _, b := range r.observer.Look(began, time.Now(), beats) {
		switch marked, err := r.store.MarkDead(ctx, b); {
		case err != nil:
			faults = append(faults, err)
		case marked:
			r.log.WarnContext(ctx, "executor shows no sign of life; its jobs go back into the line", "executor", b.Executor)
			faults = append(faults, r.Reap(ctx, b.Executor))
		}
	}
	for _, b := range beats {
		if !b.Alive {
			faults = append(faults, r.Reap(ctx, b.Executor))
		}
	}
	return r.look, errors.Join(faults...)
}

// errTurn ends a reap that another reaper is at.
var errTurn = errors.New("another reaper has the turn")

// Reap puts back the leased runs of an executor that is known to be dead or stopped. What a worker's open transaction holds
// stays leased, for the next look.
func (r *Reaper) Reap(ctx context.Context, executor int64) error {
	for after := int64(-1); ; {
		leases, err := r.store.ReadLeases(ctx, executor, after, leasesRead)
		if err != nil {
			return err
		}
		if len(leases) == 0 {
			return nil
		}
		after = leases[len(leases)-1].No
		held := map[int64]bool{}
		for batch := range slices.Chunk(leasedRuns(leases), reapBatch) {
			if err := r.split(ctx, executor, batch, held); err != nil {
				if errors.Is(err, errTurn) {
					return nil
				}
				return fmt.Errorf("reap executor %d: %w", executor, err)
			}
		}
		if err := r.store.DropLeases(ctx, executor, usedUp(leases, held)); err != nil {
			return err
		}
	}
}

// leased is a run under a lease.
type leased struct {
	store.RunKey
	lease     int64
	attempts  int16
	claimedAt time.Time
}

// leasedRuns lists the runs of leases, sorted by key, so that two who record runs cannot deadlock.
func leasedRuns(leases []store.Lease) []leased {
	var runs []leased
	for _, l := range leases {
		for i, job := range l.JobIDs {
			run := leased{RunKey: store.RunKey{JobID: job, Run: 1}, lease: l.No, claimedAt: l.ClaimedAt}
			if l.Runs != nil {
				run.Run = l.Runs[i]
			}
			if l.Attempts != nil {
				run.attempts = l.Attempts[i]
			}
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b leased) int {
		if a.JobID != b.JobID {
			return int(min(1, max(-1, a.JobID-b.JobID)))
		}
		return int(a.Run - b.Run)
	})
	return runs
}

func usedUp(leases []store.Lease, held map[int64]bool) []int64 {
	var numbers []int64
	for _, l := range leases {
		if !held[l.No] {
			numbers = append(numbers, l.No)
		}
	}
	return numbers
}

// split reaps a batch, and halves it when a run in it is held by an open transaction or cannot be recorded, so that such a run
// delays itself only. Leases of runs that stay are added to held.
func (r *Reaper) split(ctx context.Context, executor int64, batch []leased, held map[int64]bool) error {
	err := r.reap(ctx, executor, batch)
	fault := store.RowFault(err)
	if code := store.SQLState(err); !fault && code != store.LockNotAvailable && code != store.DeadlockDetected {
		return err
	}
	if len(batch) == 1 {
		held[batch[0].lease] = true
		if fault {
			r.log.ErrorContext(ctx, "a lost run cannot be put back; it stays with its dead executor and is tried again with each look",
				"job_id", batch[0].JobID, "run", batch[0].Run, "executor", executor, "error", err)
		}
		return nil
	}
	half := len(batch) / 2
	if err := r.split(ctx, executor, batch[:half], held); err != nil {
		return err
	}
	return r.split(ctx, executor, batch[half:], held)
}

// reap records a batch as lost and puts back what this recorded, in one transaction.
func (r *Reaper) reap(ctx context.Context, executor int64, batch []leased) error {
	var lost, discarded int
	err := r.store.Tx(ctx, store.ReapLimits, func(tx pgx.Tx) error {
		if mine, err := r.store.ReapTurn(ctx, tx, executor); err != nil || !mine {
			return errors.Join(err, errTurn)
		}
		p, err := r.plan(ctx, tx, executor, batch)
		if err != nil {
			return err
		}
		ended, err := r.store.EndRuns(ctx, tx, executor, p.ends)
		if err != nil {
			return err
		}
		lost, discarded = p.keep(ended)
		return r.follow(ctx, tx, p)
	})
	if err == nil && r.reaped != nil && lost+discarded > 0 {
		r.reaped(lost, discarded)
	}
	return err
}

// follow does what follows the runs of a plan.
func (r *Reaper) follow(ctx context.Context, tx pgx.Tx, p *reapPlan) error {
	if err := r.store.LineUp(ctx, tx, p.entries, 1, r.hint); err != nil {
		return err
	}
	if err := r.store.PutOff(ctx, tx, p.delayed); err != nil {
		return err
	}
	for _, reason := range []string{store.Poison, store.Exhausted} {
		if err := r.store.BuryTx(ctx, tx, p.dead[reason], reason); err != nil {
			return err
		}
	}
	return nil
}

// reapPlan says how runs end and what follows, each by the position of its run.
type reapPlan struct {
	ends    []store.Ended
	follows []state.Loss
	facts   map[int64]store.Facts

	entries []store.Entry
	delayed []store.Delayed
	dead    map[string][]int64
}

func (r *Reaper) plan(ctx context.Context, tx pgx.Tx, executor int64, batch []leased) (*reapPlan, error) {
	var ids []int64
	var again []store.RunKey
	for _, run := range batch {
		ids = append(ids, run.JobID)
		if run.Run > 1 {
			again = append(again, run.RunKey)
		}
	}
	facts, err := r.store.ReadFacts(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	var past map[int64][]state.Outcome
	if len(again) > 0 {
		if past, err = r.store.PastOutcomes(ctx, tx, again); err != nil {
			return nil, err
		}
	}
	p := &reapPlan{facts: facts, dead: map[string][]int64{}}
	for i := range batch {
		run := &batch[i]
		end := store.Ended{
			JobID: run.JobID, Run: run.Run, Attempt: run.attempts + 1, StartedAt: &run.claimedAt,
			Error: fmt.Sprintf("lost: executor %d showed no sign of life", executor),
		}
		loss := state.Loss{Outcome: state.Discarded}
		if f, known := facts[run.JobID]; known {
			most := f.MaxAttempts
			if f.Node { // its retries are for what its program does, and not for processes that die: a loss is never its last attempt
				most = max(most, end.Attempt+1)
			}
			loss = state.AfterLoss(past[run.JobID], end.Attempt, most, r.lostLimit)
			loss.Delay = service.Jitter(loss.Delay)
		} else {
			end.Error = rowMissing
		}
		if loss.Delay > 0 {
			end.Delay = &loss.Delay
		}
		end.Outcome = string(loss.Outcome)
		p.ends, p.follows = append(p.ends, end), append(p.follows, loss)
	}
	return p, nil
}

// rowMissing is the error of a run whose job is not to be found.
const rowMissing = "the job's row is missing: what was asked is not known any more"

// keep sorts out what follows those runs that were really ended by this plan.
func (p *reapPlan) keep(ended map[store.RunKey]bool) (lost, discarded int) {
	for i, end := range p.ends {
		if !ended[store.RunKey{JobID: end.JobID, Run: end.Run}] {
			continue
		}
		loss, f := p.follows[i], p.facts[end.JobID]
		switch {
		case loss.Outcome == state.Discarded:
			discarded++
			if loss.Reason != "" {
				p.dead[loss.Reason] = append(p.dead[loss.Reason], end.JobID)
			}
			continue
		case loss.Delay > 0:
			p.delayed = append(p.delayed, store.Delayed{JobID: end.JobID, Run: end.Run + 1, Attempts: end.Attempt, Delay: loss.Delay})
		default:
			p.entries = append(p.entries, store.Entry{
				JobID: end.JobID, Run: end.Run + 1, Attempts: end.Attempt, Line: f.Queue, Priority: f.Priority,
			})
		}
		lost++
	}
	return lost, discarded
}
