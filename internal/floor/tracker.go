package floor

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Key is a part of a relation with a mark of its own: a line and a priority. Relations ordered by time have one key, the zero value.
type Key struct {
	Line     string
	Priority int16
}

// Tracker holds one reader's marks. It starts with all marks at 0 and reads no row before the first Refresh. Safe for
// concurrent use.
type Tracker struct {
	sql   statements
	below func(n int)

	reading sync.Mutex // held over a read and what follows from it, so that marks move by one read at a time

	mu       sync.RWMutex
	marks    map[Key]int64
	last     int64     // the newest row read; 0: none
	instance time.Time // where it was read
	pause    time.Time // no look below before this
	moved    bool      // a mark changed since the last look below
	looked   time.Time // below
}

// NewTracker makes a tracker without keys. below is told of keys with rows below their marks that no passed writer explains;
// it may be nil.
func NewTracker(schema string, relation Relation, below func(n int)) *Tracker {
	t := &Tracker{sql: load(schema, relation), below: below, marks: map[Key]int64{}}
	if relation.single() {
		t.marks[Key{}] = 0
	}
	return t
}

// Use sets the lines in use, each with priorities 1 to 4. New ones start at 0, others are forgotten.
func (t *Tracker) Use(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	marks := make(map[Key]int64, 4*len(lines))
	for _, line := range lines {
		for priority := int16(1); priority <= 4; priority++ {
			key := Key{line, priority}
			marks[key] = t.marks[key]
		}
	}
	t.marks = marks
}

// Mark is the position that a claim starts at: no row of this line and priority lies below it. 0 for a line not in use.
func (t *Tracker) Mark(line string, priority int16) int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.marks[Key{line, priority}]
}

// Floor is the mark of a relation with one key.
func (t *Tracker) Floor() int64 { return t.Mark("", 0) }

// Refresh moves the marks up to the first rows that a plain read finds, and down where a passed writer has ended. One statement.
// Call it every 100 to 500 ms while claims find work, and before the first claim after a sleep. Never in a transaction.
func (t *Tracker) Refresh(ctx context.Context, db DB) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	return t.refresh(ctx, db)
}

func (t *Tracker) refresh(ctx context.Context, db DB) error {
	keys, marks := t.snapshot()
	args := append([]any{t.last, marks}, t.keyArgs(keys)...)
	var instance time.Time
	var newest, settled, follows int64
	var first []*int64
	switch err := db.QueryRow(ctx, t.sql.refresh, args...).Scan(&instance, &newest, &settled, &follows, &first); {
	case isNoRows(err): // nothing published, or all of it gone
		t.reset(keys)
		return nil
	case err != nil:
		return fmt.Errorf("read marks of %s: %w", t.sql.relation, err)
	}
	broken := t.last > 0 && (newest < t.last || follows != t.last || !instance.Equal(t.instance))
	if broken {
		t.reset(keys)
		return t.refresh(ctx, db)
	}
	t.read(newest, instance)
	t.set(keys, func(i int) int64 {
		if first[i] != nil {
			return *first[i]
		}
		return settled + 1
	})
	return nil
}

// reset takes all marks back to 0 and forgets what was read.
func (t *Tracker) reset(keys []Key) {
	t.read(0, time.Time{})
	t.set(keys, func(int) int64 { return 0 })
}

// read remembers the newest row that was read, and where.
func (t *Tracker) read(newest int64, instance time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last, t.instance = newest, instance
}

// quietNet is the time between two looks below marks that do not move.
const quietNet = 10 * time.Minute

// hasMoved tells whether a mark changed since it was last asked.
func (t *Tracker) hasMoved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved := t.moved
	t.moved = false
	return moved
}

// CheckBelow is the net: it looks below the marks, lowers them to what it finds and returns how many keys had rows that no
// passed writer explains. To be called about once a minute. It skips a call when the last look was slow, so that it takes
// at most a hundredth of the time, and, but for every ten minutes, when no mark has moved since.
func (t *Tracker) CheckBelow(ctx context.Context, db DB) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	start := time.Now()
	if start.Before(t.pause) || !t.hasMoved() && start.Sub(t.looked) < quietNet {
		return 0, nil
	}
	defer func() {
		t.looked = time.Now()
		t.pause = t.looked.Add(100 * t.looked.Sub(start))
	}()
	// What a passed writer left is expected from the moment its end is published; so the newest row must be one that was read.
	for range 5 {
		if err := t.refresh(ctx, db); err != nil {
			return 0, err
		}
		found, current, err := t.lookBelow(ctx, db)
		if err != nil || current {
			return found, err
		}
	}
	return 0, nil
}

// lookBelow looks once. It does nothing and returns false if a row was published since the last refresh.
func (t *Tracker) lookBelow(ctx context.Context, db DB) (found int, current bool, err error) {
	keys, marks := t.snapshot()
	args := append([]any{marks}, t.keyArgs(keys)...)
	var newest int64
	var explained *int64
	var first []*int64
	if err := db.QueryRow(ctx, t.sql.below, args...).Scan(&newest, &explained, &first); err != nil {
		return 0, false, fmt.Errorf("look below the marks of %s: %w", t.sql.relation, err)
	}
	if newest != t.last {
		return 0, false, nil
	}
	t.set(keys, func(i int) int64 {
		if first[i] == nil {
			return marks[i]
		}
		if explained == nil || *first[i] < *explained {
			found++
		}
		return *first[i]
	})
	if found > 0 && t.below != nil {
		t.below(found)
	}
	return found, true, nil
}

// snapshot returns the keys in order, and their marks.
func (t *Tracker) snapshot() ([]Key, []int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	keys := make([]Key, 0, len(t.marks))
	marks := make([]int64, 0, len(t.marks))
	for key, mark := range t.marks {
		keys, marks = append(keys, key), append(marks, mark)
	}
	return keys, marks
}

// keyArgs are the statements' arguments that name the keys: none for a relation with one key.
func (t *Tracker) keyArgs(keys []Key) []any {
	if t.sql.relation.single() {
		return nil
	}
	lines, priorities := make([]string, len(keys)), make([]int16, len(keys))
	for i, key := range keys {
		lines[i], priorities[i] = key.Line, key.Priority
	}
	return []any{lines, priorities}
}

// set stores new marks for those keys that are still in use.
func (t *Tracker) set(keys []Key, mark func(i int) int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, key := range keys {
		old, used := t.marks[key]
		if !used {
			continue
		}
		t.marks[key] = mark(i)
		t.moved = t.moved || t.marks[key] != old
	}
}

// Newest is the number of the newest row of floor that was read, 0 if none.
func (t *Tracker) Newest() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.last
}
