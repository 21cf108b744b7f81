package periodic

import (
	"testing"
	"time"
)

// A cache that is full lets others go; what a step has taken from it stays with the step.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	k := newCache()
	for id := int64(1); id <= 100; id++ {
		k.put(&compiled{id: id, version: 7, size: 1 << 20})
	}
	k.put(&compiled{id: 100, version: 8, size: 2 << 20})
	if len(k.byID) != 63 || k.bytes != 64<<20 {
		t.Errorf("%d schedules of %d bytes are kept", len(k.byID), k.bytes)
	}
	known, versions := k.take([]int64{100, 1000})
	if known[100] == nil || versions[0] != 8 || versions[1] != 0 {
		t.Errorf("versions are %v", versions)
	}
}

// More schedules than are kept fire all the same.
func TestSchedulesBeyondTheCache(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.known.bytes = maxCachedBytes // as if it were full
	for _, name := range []string{"a", "b", "c"} {
		r.stored(eachSecond(name, 0), 3*time.Second)
	}
	for range 2 {
		r.fireAll()
		exec(t, r.pool, `UPDATE pelton.schedule_due SET wake = now()`)
	}
	if n := one[int](t, r.pool, `SELECT count(DISTINCT schedule_id) FROM pelton.schedule_tick WHERE outcome = 'fired'`); n != 3 {
		t.Errorf("%d have fired", n)
	}
}
