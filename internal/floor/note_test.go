package floor

import (
	"testing"
	"time"
)

// A transaction that was passed while open, and prepared while a later note waited for another, is passed a second time under its
// new id. When the old id is found gone, the new one must be looked for from where the old one was.
func TestPassedWriterPassedAgainAsPrepared(t *testing.T) {
	t.Parallel()
	after := Row{No: 1, Settled: 574, Passed: []Passed{{Writer: "7/45", LookFrom: 552}}}
	n := newNote(after, 581, Holders{Open: []string{"7/45", "8/1"}}, time.Now())
	n.look(Holders{Prepared: []string{"7/45*1"}})
	row := n.settled()
	if len(row.Passed) != 2 {
		t.Fatalf("passed are %v, want the writer and what may continue the one waited for", row.Passed)
	}
	next := watch(row, Holders{Prepared: []string{"7/45*1"}})
	if next == nil || len(next.Passed) != 1 || next.Passed[0] != (Passed{Writer: "7/45*1", LookFrom: 552}) {
		t.Fatalf("published %+v, want the prepared transaction looked for from 552", next)
	}
}

// The locks of all backends are not read at one moment: a writer that prepares meanwhile shows beside its continuation.
func TestWriterBesideItsContinuation(t *testing.T) {
	t.Parallel()
	n := newNote(Row{}, 10, Holders{Open: []string{"3/1"}, Prepared: []string{"9/9*1"}}, time.Now())
	n.look(Holders{Open: []string{"3/1"}, Prepared: []string{"3/1*1", "9/9*1"}})
	n.look(Holders{Prepared: []string{"3/1*1", "9/9*1"}})
	if len(n.waiting) != 2 || n.waiting[1] != "3/1*1" {
		t.Fatalf("waiting for %v, want 9/9*1 and 3/1*1", n.waiting)
	}
	n.look(Holders{Prepared: []string{"3/2*1"}}) // prepared after both ended, or their continuation: nobody can tell
	n.look(Holders{Prepared: []string{"3/2*1", "4/4*1"}})
	if len(n.waiting) != 1 || n.waiting[0] != "3/2*1" {
		t.Fatalf("waiting for %v, want 3/2*1 only: 4/4*1 appeared when nobody had vanished", n.waiting)
	}
}
