package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// MarkerConfig is how a marker works. Zero fields mean the defaults.
type MarkerConfig struct {
	// Pace is the time between two published rows at full rate. Defaults to 200 ms.
	Pace time.Duration
	// Look is the time between two looks at the writers of a note. Defaults to 25 ms.
	Look time.Duration
	// Pass is how long a note waits for a writer before it is passed. Defaults to 3 s.
	Pass time.Duration
	// Worth is the least advance that is published at once; less waits for Idle. Defaults to 100 rows; of a relation ordered
	// by time it counts what was reported by Marker.Moved.
	Worth int64
	// Idle is the age at which a small advance is published. Defaults to 10 s.
	Idle time.Duration
	// Deep is the time between two looks when nothing at all was drawn. Defaults to 6 times Idle: somebody else should look in
	// between, at little cost, and call earlier.
	Deep time.Duration
}

func (c MarkerConfig) withDefaults() MarkerConfig {
	def := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	def(&c.Pace, 200*time.Millisecond)
	def(&c.Look, 25*time.Millisecond)
	def(&c.Pass, 3*time.Second)
	def(&c.Idle, 10*time.Second)
	def(&c.Deep, 6*c.Idle)
	if c.Worth == 0 {
		c.Worth = 100
	}
	return c
}

// Marker publishes what is settled of one relation. Any number of them may run. Not safe for concurrent use: one loop owns it.
type Marker struct {
	config MarkerConfig
	sql    statements
	note   *note
	mine   int64 // the newest row, if this marker published it
	moved  int64 // rows taken since the last row, of a relation ordered by time
}

// NewMarker makes a marker.
func NewMarker(schema string, relation Relation, config MarkerConfig) *Marker {
	return &Marker{config: config.withDefaults(), sql: load(schema, relation)}
}

// Moved reports that n rows were taken from the head, for a relation ordered by time: without any, its floor need not rise.
func (m *Marker) Moved(n int) { m.moved += int64(n) }

// Step does the next piece of work, at most three small statements, and returns when to call again. After an error the note is
// forgotten, and the next step starts anew.
func (m *Marker) Step(ctx context.Context, db DB) (time.Duration, error) {
	next, err := m.step(ctx, db)
	if err != nil {
		m.note = nil
		return m.config.Idle, fmt.Errorf("settle positions of %s: %w", m.sql.relation, err)
	}
	return next, nil
}

func (m *Marker) step(ctx context.Context, db DB) (time.Duration, error) {
	if m.note != nil {
		return m.settle(ctx, db)
	}
	newest, position, age, err := m.read(ctx, db)
	if err != nil {
		return 0, err
	}
	behind, worth := position < newest.Settled, m.worth(newest, position, age)
	if newest.No != m.mine && age < 3*m.config.Pace || !behind && !worth && len(newest.Passed) == 0 {
		return m.rest(newest, position), nil
	}
	holders, err := m.holders(ctx, db)
	if err != nil {
		return 0, err
	}
	if behind {
		return m.config.Pace, m.publish(ctx, db, newest, *reset(newest, position, holders))
	}
	if row := watch(newest, holders); row != nil {
		return 0, m.publish(ctx, db, newest, *row)
	}
	if !worth {
		return m.watching(newest), nil
	}
	m.note = newNote(newest, position, holders, time.Now())
	return m.conclude(ctx, db)
}

// settle looks at the writers of the note.
func (m *Marker) settle(ctx context.Context, db DB) (time.Duration, error) {
	holders, err := m.holders(ctx, db)
	if err != nil {
		return 0, err
	}
	if !holders.Instance.Equal(m.note.after.Instance) {
		m.note = nil
		return m.config.Pace, nil
	}
	m.note.look(holders)
	return m.conclude(ctx, db)
}

// conclude publishes the note if nobody is waited for any more, or for too long.
func (m *Marker) conclude(ctx context.Context, db DB) (time.Duration, error) {
	if len(m.note.waiting) > 0 && time.Since(m.note.made) < m.config.Pass {
		return m.config.Look, nil
	}
	n := m.note
	m.note = nil
	return m.config.Pace, m.publish(ctx, db, n.after, n.settled())
}

// worth tells whether enough was drawn since the newest row to publish another.
func (m *Marker) worth(newest Row, position int64, age time.Duration) bool {
	advance := position - newest.Settled
	if m.sql.relation.single() {
		advance = m.moved
	}
	return advance >= m.config.Worth || advance > 0 && age >= m.config.Idle
}

// rest is how long to wait while nothing is to publish: long if nothing was drawn, less if another marker works, or a small
// advance comes of age soon.
func (m *Marker) rest(newest Row, position int64) time.Duration {
	switch {
	case !m.sql.relation.single() && position == newest.Settled, m.sql.relation.single() && m.moved == 0:
		return m.config.Deep
	case newest.No != m.mine:
		return max(m.config.Pace, m.config.Idle/4)
	default:
		return max(m.config.Pace, m.config.Idle/10)
	}
}

// watching is the time between two looks at passed writers that are still open: this marker's own, or another's, who may have
// died.
func (m *Marker) watching(newest Row) time.Duration {
	if newest.No == m.mine {
		return 2 * m.config.Pace
	}
	return max(2*m.config.Pace, m.config.Idle/4)
}

func (m *Marker) read(ctx context.Context, db DB) (newest Row, position int64, age time.Duration, err error) {
	var seconds float64
	var instance time.Time
	err = db.QueryRow(ctx, m.sql.note).Scan(&position, &instance, &newest.No, &newest.Instance, &newest.Settled, &newest.Passed, &seconds)
	if err != nil {
		return Row{}, 0, 0, fmt.Errorf("read the newest row: %w", err)
	}
	return newest, position, time.Duration(min(seconds, 1e9) * float64(time.Second)), nil
}

func (m *Marker) holders(ctx context.Context, db DB) (Holders, error) {
	var h Holders
	if err := db.QueryRow(ctx, m.sql.holders).Scan(&h.Instance, &h.Open, &h.Prepared); err != nil {
		return Holders{}, fmt.Errorf("read the writers: %w", err)
	}
	return h, nil
}

// publish appends a row after newest. It does nothing if another marker was quicker, or the server is another one.
func (m *Marker) publish(ctx context.Context, db DB, newest, row Row) error {
	var passed any
	if len(row.Passed) > 0 {
		passed = row.Passed
	}
	err := db.QueryRow(ctx, m.sql.publish, string(m.sql.relation), newest.No, row.Instance, row.Settled, row.LookFrom, passed).Scan(&m.mine)
	switch {
	case isNoRows(err):
		return nil
	case err != nil:
		return fmt.Errorf("publish a row: %w", err)
	}
	m.moved = 0
	return nil
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// Pace is the shortest time between two published rows.
func (m *Marker) Pace() time.Duration { return m.config.Pace }
