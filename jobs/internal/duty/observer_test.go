package duty_test

import (
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/internal/duty"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	lease = 30 * time.Second
	every = 10 * time.Second
)

func alive(count int64) []store.Beat { return []store.Beat{{Executor: 1, Count: count, Alive: true}} }

func TestObserver(t *testing.T) {
	t.Parallel()
	type look struct {
		after  time.Duration // since the look before
		beats  []store.Beat
		failed bool
		dead   bool
	}
	for name, looks := range map[string][]look{
		"a counter that stands still is dead after the lease": {
			{0, alive(7), false, false}, {every, alive(7), false, false}, {every, alive(7), false, false}, {every, alive(7), false, true},
		},
		"a counter that moves is alive": {
			{0, alive(7), false, false},
			{every, alive(8), false, false},
			{every, alive(8), false, false},
			{every, alive(8), false, false},
			{every, alive(9), false, false},
		},
		"a failed look starts anew": {
			{0, alive(7), false, false},
			{every, alive(7), false, false},
			{every, nil, true, false},
			{every, alive(7), false, false},
			{every, alive(7), false, false},
			{every, alive(7), false, false},
			{every, alive(7), false, true},
		},
		"a gap starts anew: this process was stopped itself": {
			{0, alive(7), false, false}, {5 * time.Minute, alive(7), false, false}, {every, alive(7), false, false},
		},
		"who is known to be dead is not judged": {
			{0, []store.Beat{{Executor: 1}}, false, false},
			{every, []store.Beat{{Executor: 1}}, false, false},
			{every, []store.Beat{{Executor: 1}}, false, false},
			{every, []store.Beat{{Executor: 1}}, false, false},
		},
		"who was away for a look is watched anew": {
			{0, alive(7), false, false}, {every, nil, false, false}, {every, alive(7), false, false}, {every, alive(7), false, false},
		},
	} {
		o, now := duty.NewObserver(lease, 3*every), time.Now()
		for i, l := range looks {
			now = now.Add(l.after)
			if l.failed {
				o.Forget()
				continue
			}
			if got := len(o.Look(now, now, l.beats)) > 0; got != l.dead {
				t.Errorf("%s: look %d says dead is %v", name, i, got)
			}
		}
	}
}

// A look that hung must not count the time that it hung: the counter was read at some time within it.
func TestObserverCountsNoTimeWithinALook(t *testing.T) {
	t.Parallel()
	o, now := duty.NewObserver(lease, lease), time.Now()
	o.Look(now, now.Add(every), alive(7))
	now = now.Add(lease)
	if dead := o.Look(now, now.Add(every), alive(7)); len(dead) > 0 {
		t.Fatal("dead, though only 20 s lie for sure between the two readings")
	}
}
