package duty

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/internal/store"
)

const (
	noteFirst   = 3 * time.Second  // from the start to the first note: what was late before is done by then
	noteTimeout = 10 * time.Second // of one note
	noteError   = 500              // bytes of an error that are noted
)

// notebook remembers how the duties of this process get on, and notes it in the database for others to see. Duties go on if that fails.
type notebook struct {
	*service.Service

	store  *store.Store
	config Config

	mu    sync.Mutex
	pages map[string]*page
}

// page is what is known of a duty.
type page struct {
	done    time.Time // of the last step that went well; zero: noted, and none since
	again   time.Duration
	failing time.Time // since when; zero: it does not fail
	err     error
}

func newNotebook(st *store.Store, config Config) *notebook {
	n := &notebook{store: st, config: config, pages: map[string]*page{}}
	n.Service = service.New(n.run)
	return n
}

// stepped is told of the end of each step.
func (n *notebook) stepped(duty string, again time.Duration, err error) {
	n.config.Stepped(duty, again, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pages[duty]
	if p == nil {
		p = &page{}
		n.pages[duty] = p
	}
	if err == nil {
		*p = page{done: time.Now(), again: again}
		return
	}
	if p.err == nil {
		p.failing = time.Now()
	}
	p.err = err
}

func (n *notebook) run(ctx context.Context) {
	for wait := min(noteFirst, n.config.NoteEvery); service.Sleep(ctx, wait); wait = n.config.NoteEvery {
		n.note(ctx)
	}
}

// note notes what is new, and all that fails. What cannot be noted is new the next time.
func (n *notebook) note(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	notes, forget := n.open(time.Now())
	if len(notes) == 0 {
		return
	}
	if err := n.store.NoteDuties(ctx, n.config.Process, notes); err != nil {
		n.config.Log.DebugContext(ctx, "how duties get on is not noted; trying again", "error", err)
		return
	}
	forget()
}

// open is what is to be noted at a time, and what forgets it once it was.
func (n *notebook) open(now time.Time) (notes []store.DutyNote, forget func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	noted := map[*page]time.Time{}
	for duty, p := range n.pages {
		note := store.DutyNote{Duty: duty, Again: p.again}
		if !p.done.IsZero() {
			ago := now.Sub(p.done)
			note.Done = &ago
			noted[p] = p.done
		}
		if p.err != nil {
			note.Error, note.Failing = shorten(p.err.Error()), now.Sub(p.failing)
		}
		if note.Done != nil || note.Error != "" {
			notes = append(notes, note)
		}
	}
	slices.SortFunc(notes, func(a, b store.DutyNote) int { return strings.Compare(a.Duty, b.Duty) })
	return notes, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for p, done := range noted {
			if p.done.Equal(done) {
				p.done = time.Time{}
			}
		}
	}
}

// shorten makes a text that can be stored, of at most noteError bytes.
func shorten(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), noteError)], ""), "\x00", "")
}
