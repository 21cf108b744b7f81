package duty_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// raceSize is the number of runs that are raced for in one round.
const raceSize = 200

// Results are recorded while reapers take the runs away, 2,000 times, a million times with PELTON_SCENARIOS=full. Each run ends
// once: as its result says, or as lost, and only what was lost or failed is in the line again, once.
func TestResultsRaceTheReaper(t *testing.T) {
	t.Parallel()
	rounds, most := 10, time.Minute
	if pgtest.FullSize() {
		rounds, most = 1_000_000/raceSize, 6*time.Hour
	}
	f := newFixture(t)
	began := time.Now()
	var refused, recorded int
	for round := 1; round <= rounds && time.Since(began) < most; round++ {
		r := newRace(f)
		r.run()
		no, yes := r.check()
		refused, recorded = refused+no, recorded+yes
		if round%100 == 0 || round == rounds { // before there are so many that the audit takes long
			schematest.Audit(t, f.pool)
			f.exec(`TRUNCATE pelton.job, pelton.job_attempt, pelton.job_ready`)
		}
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d results were recorded, %d refused, in %v", recorded, refused, time.Since(began).Round(time.Second))
	if refused == 0 || recorded == 0 {
		t.Errorf("%d results were recorded and %d refused: the test shows nothing", recorded, refused)
	}
}

// race is one executor's runs, its finishers and two reapers.
type race struct {
	*fixture

	ids      []int64
	executor int64
	batches  [][]*store.Result

	mu      sync.Mutex
	refused map[int64]bool
	faults  []error
}

// newRace has every fourth run fail, and the results come in batches of any size.
func newRace(f *fixture) *race {
	r := &race{fixture: f, ids: f.jobs(raceSize), refused: map[int64]bool{}}
	r.executor = f.executor(r.ids)
	var results []*store.Result
	for i, id := range r.ids {
		now := time.Now()
		result := &store.Result{JobID: id, Run: 1, Attempt: 1, Outcome: state.Completed, StartedAt: &now, EndedAt: now, Line: "default", Priority: 1}
		if i%4 == 0 {
			result.Outcome, result.Error = state.Errored, "no luck"
		}
		results = append(results, result)
	}
	rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
	for len(results) > 0 {
		n := min(len(results), 1+rand.N(20))
		r.batches = append(r.batches, results[:n])
		results = results[n:]
	}
	return r
}

func (r *race) run() {
	var all sync.WaitGroup
	starts := make([]chan struct{}, len(r.batches))
	for i := range starts {
		starts[i] = make(chan struct{})
	}
	for first := range 2 { // as many as an executor has
		all.Go(func() {
			for i := first; i < len(r.batches); i += 2 {
				close(starts[i])
				r.finish(r.batches[i])
			}
		})
	}
	for range 2 {
		begin := starts[rand.N(len(starts))]
		all.Go(func() {
			<-begin
			r.fault(duty.NewReaper(r.store, duty.Config{}).Reap(r.Context(), r.executor))
		})
	}
	all.Wait()
	r.fault(duty.NewReaper(r.store, duty.Config{}).Reap(r.Context(), r.executor)) // what was held
}

// finish records a batch, and halves it as long as somebody holds a run of it.
func (r *race) finish(batch []*store.Result) {
	no, err := r.store.Finish(r.Context(), r.executor, batch)
	if code := store.SQLState(err); code == store.LockNotAvailable || code == store.DeadlockDetected {
		if len(batch) > 1 {
			r.finish(batch[:len(batch)/2])
			batch = batch[len(batch)/2:]
		}
		r.finish(batch)
		return
	}
	r.fault(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, result := range no {
		r.refused[result.JobID] = true
	}
}

func (r *race) fault(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.faults = append(r.faults, err)
	}
}

// check compares what the finishers were told with what is stored.
func (r *race) check() (refused, recorded int) {
	r.Helper()
	if err := errors.Join(r.faults...); err != nil {
		r.Fatal(err)
	}
	want := map[state.Outcome]int64{}
	var lost, own, again []int64
	for _, result := range slices.Concat(r.batches...) {
		switch {
		case r.refused[result.JobID]:
			lost, again = append(lost, result.JobID), append(again, result.JobID)
		default:
			own = append(own, result.JobID)
			want[result.Outcome]++
			if result.Outcome == state.Errored {
				again = append(again, result.JobID)
			}
		}
	}
	const runs = `SELECT count(*) FROM pelton.job_attempt WHERE job_id = ANY ($1) AND outcome = ANY ($2::text[]::pelton.outcome[])`
	for what, got := range map[string][2]int64{
		"runs":                        {r.int(`SELECT count(*) FROM pelton.job_attempt WHERE job_id = ANY ($1)`, r.ids), raceSize},
		"refused runs that were lost": {r.int(runs, lost, []string{"lost"}), int64(len(lost))},
		"runs completed":              {r.int(runs, own, []string{"completed"}), want[state.Completed]},
		"runs failed":                 {r.int(runs, own, []string{"errored"}), want[state.Errored]},
		"leases left":                 {r.int(`SELECT count(*) FROM pelton.job_lease`), 0},
		"second runs in the line": {r.int(`SELECT count(*) FROM (SELECT unnest(job_ids) AS id, unnest(runs) AS run FROM pelton.job_ready) t
			WHERE id = ANY ($1) AND run = 2`, again), int64(len(again))},
		"runs of this round in the line": {r.int(`SELECT count(*) FROM (SELECT unnest(job_ids) AS id FROM pelton.job_ready) t
			WHERE id = ANY ($1)`, r.ids), int64(len(again))},
	} {
		if got[0] != got[1] {
			r.Errorf("%d %s, want %d", got[0], what, got[1])
		}
	}
	return len(lost), len(own)
}
