package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// DutyNote is how a duty of this process got on since the last note.
type DutyNote struct {
	Duty    string
	Done    *time.Duration // since the end of its last step that went well; nil: none did since
	Again   time.Duration  // from then to the next step
	Failing time.Duration  // how long it has failed
	Error   string         // why; empty: it does not fail
}

// NoteDuties notes how the duties of a process got on, in one statement.
func (s *Store) NoteDuties(ctx context.Context, process string, notes []DutyNote) error {
	n := len(notes)
	duties, done, again := make([]string, n), make([]*float64, n), make([]float64, n)
	faults, failing := make([]*string, n), make([]*float64, n)
	for i := range notes {
		note := &notes[i]
		duties[i], again[i] = note.Duty, note.Again.Seconds()
		if note.Done != nil {
			ago := note.Done.Seconds()
			done[i] = &ago
		}
		if note.Error != "" {
			long := note.Failing.Seconds()
			faults[i], failing[i] = &note.Error, &long
		}
	}
	if _, err := s.Pool.Exec(ctx, s.sql.Get("note_duties"), process, duties, done, again, faults, failing); err != nil {
		return fmt.Errorf("note %d duties: %w", n, err)
	}
	return nil
}

// Duty is one of the scheduler's duties, and how it gets on.
type Duty struct {
	Name         string        `json:"duty"`
	State        string        `json:"state"` // ok, late, failing
	DoneAt       time.Time     `json:"done_at"`
	DoneBy       *string       `json:"done_by"` // nil: nobody yet
	Late         time.Duration `json:"-"`
	FailingSince *time.Time    `json:"failing_since"` // nil: no process fails at it; one may while others do it in time
	FailedBy     *string       `json:"failed_by"`
	Error        *string       `json:"error"`
}

// Duties reads how the scheduler's duties get on, by name.
func (s *Store) Duties(ctx context.Context, db DB) ([]Duty, error) {
	rows, err := db.Query(ctx, s.sql.Get("duties"))
	if err != nil {
		return nil, fmt.Errorf("read duties: %w", err)
	}
	duties, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Duty])
	if err != nil {
		return nil, fmt.Errorf("read duties: %w", err)
	}
	return duties, nil
}
