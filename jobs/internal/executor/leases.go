package executor

import (
	"maps"
	"slices"
	"sync"
)

// leaseKey names a lease: the incarnation that took it and its number.
type leaseKey struct {
	executor, no int64
}

// leases knows which leases this process has asked for and how many of their runs are not yet recorded.
type leases struct {
	mu     sync.Mutex
	next   int64
	open   map[leaseKey]int // runs left; asked: the claim is on its way
	usedUp []leaseKey
}

// asked marks a lease whose claim has not answered.
const asked = -1

func newLeases() *leases {
	return &leases{next: 1, open: map[leaseKey]int{}}
}

// ask registers n lease numbers before a claim is sent, and returns the first.
func (l *leases) ask(executor int64, n int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.next
	l.next += int64(n)
	for no := first; no < l.next; no++ {
		l.open[leaseKey{executor, no}] = asked
	}
	return first
}

// settle tells what became of the numbers asked for: taken maps those in use to their number of runs.
func (l *leases) settle(executor, first int64, n int, taken map[int64]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for no := first; no < first+int64(n); no++ {
		key := leaseKey{executor, no}
		if runs := taken[no]; runs > 0 {
			l.open[key] = runs
		} else {
			delete(l.open, key) // not used; or the answer was lost, then the heartbeat finds it as a stranger
		}
	}
}

// ended counts recorded runs.
func (l *leases) ended(tasks []*Task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range tasks {
		left, known := l.open[t.lease]
		if !known {
			continue
		}
		if left > 1 {
			l.open[t.lease] = left - 1
			continue
		}
		delete(l.open, t.lease)
		l.usedUp = append(l.usedUp, t.lease)
	}
}

// takeUsedUp returns the used-up leases that are to be deleted, by executor, if there are at least so many.
func (l *leases) takeUsedUp(least int) map[int64][]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.usedUp) < max(1, least) {
		return nil
	}
	byExecutor := map[int64][]int64{}
	for _, key := range l.usedUp {
		byExecutor[key.executor] = append(byExecutor[key.executor], key.no)
	}
	l.usedUp = nil
	return byExecutor
}

// giveBack returns used-up leases that could not be deleted.
func (l *leases) giveBack(executor int64, numbers []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, no := range numbers {
		l.usedUp = append(l.usedUp, leaseKey{executor, no})
	}
}

// strangers picks from the leases that the database has for an executor those that nobody here works: to be handed back.
func (l *leases) strangers(executor int64, stored []int64) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(stored), func(no int64) bool {
		key := leaseKey{executor, no}
		_, known := l.open[key]
		return known || slices.Contains(l.usedUp, key)
	})
}

// forget drops all leases of earlier incarnations.
func (l *leases) forget(before int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := func(key leaseKey) bool { return key.executor < before }
	maps.DeleteFunc(l.open, func(key leaseKey, _ int) bool { return old(key) })
	l.usedUp = slices.DeleteFunc(l.usedUp, old)
}
