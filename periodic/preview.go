package periodic

import (
	"errors"
	"fmt"
	"time"

	"github.com/peltonq/pelton/periodic/internal/tick"
)

// PreviewTick is a tick that Preview foresees.
type PreviewTick struct {
	At   time.Time // in the schedule's time zone; of one that is dropped because of a gap: the first moment after the gap
	Note Note
	Wall time.Time // the time on the wall that the expression names, coded as UTC; zero if it names none
	More int       // further times on the wall that are this same tick, because the clock leaves them out
}

// Runs tells whether it may run: no clock change drops it.
func (t PreviewTick) Runs() bool { return t.Note == NoteNone || t.Note == NoteMoved }

// Note says what a clock change makes of a tick.
type Note string

// The notes.
const (
	NoteNone          Note = ""
	NoteMoved         Note = "moved"            // runs after the gap that its time lies in
	NoteDroppedGap    Note = "dropped (gap)"    // does not run: the clock leaves its time out
	NoteDroppedRepeat Note = "dropped (repeat)" // does not run: the clock shows its time twice, and the other one runs
)

// noteOf is a tick's note in words for people.
func noteOf(note tick.Note) Note {
	switch note {
	case tick.NoteMoved:
		return NoteMoved
	case tick.NoteGap:
		return NoteDroppedGap
	case tick.NoteRepeat:
		return NoteDroppedRepeat
	default:
		return NoteNone
	}
}

// MaxPreview is the most ticks that Preview gives.
const MaxPreview = 10_000

// Preview gives the first n ticks of a schedule from a time on, that time included. Ticks that a clock change drops are among them, and counted. Name
// and target need not be set. Spread and Jitter do not show: they put off the run, not the tick. It asks no database.
func Preview(s Schedule, from time.Time, n int) ([]PreviewTick, error) {
	if n < 1 || n > MaxPreview {
		return nil, fmt.Errorf("preview %d ticks: want 1 to %d", n, MaxPreview)
	}
	source, loc, err := previewed(&s, from)
	if err != nil {
		return nil, err
	}
	if s.StartAt != nil && s.StartAt.After(from) {
		from = *s.StartAt
	}
	ticks := make([]PreviewTick, 0, min(n, 100))
	for t := range source.All(tick.After(from.Add(-time.Nanosecond))) {
		if s.EndAt != nil && t.At.After(*s.EndAt) {
			break
		}
		ticks = append(ticks, PreviewTick{t.At.In(loc), noteOf(t.Note), t.Local, max(0, t.Merged)})
		if len(ticks) == n {
			break
		}
	}
	return ticks, nil
}

// errDelayPreview is a schedule whose ticks nobody can know.
var errDelayPreview = errors.New("a fixed delay has no ticks to foresee: the next one is known when the last run has ended")

// previewed is the source of a schedule's ticks; of one without a name or a target too.
func previewed(s *Schedule, from time.Time) (tick.Source, *time.Location, error) {
	if s.Delay != 0 {
		return tick.Source{}, nil, errDelayPreview
	}
	times := *s
	times.Name, times.Job, times.Flow = "preview", &JobTarget{Kind: "preview"}, nil
	c, err := times.compile(0, from, time.Time{}, nil)
	if err != nil {
		return tick.Source{}, nil, err
	}
	return *c.spec.Ticks, c.zone, nil
}
