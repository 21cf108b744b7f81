package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/peltonq/pelton/internal/quantity"
)

// Report says what one pass of maintenance did.
type Report struct {
	Busy      bool           // another keeper was at work, so this one did nothing
	Created   []string       // partitions made ahead
	Closed    []string       // open-ended partitions that held rows and got an end
	Dropped   []string       // partitions past their retention
	Survivors int            // jobs copied into _old partitions, those that were there before included
	Kept      []string       // partitions past their retention with too many survivors to move; looked at again by the next pass
	Deleted   map[string]int // rows deleted one by one, by table; job counts those of the _old partitions
	Postponed []Postponed    // steps given up for now because somebody held a lock
	Orphans   []string       // tables with rows that look like partitions of Pelton's, but are not attached
	Ahead     []Ahead        // how far partitions are made ahead, after the pass
}

// Postponed is a step that got its locks in none of its tries. The next pass takes it up again.
type Postponed struct {
	Step     string
	Tries    int
	Blockers []Blocker // who held locks after the last try, oldest transaction first, at most 5; may have ended since
}

func (p Postponed) String() string {
	var who []string
	for _, b := range p.Blockers {
		who = append(who, b.String())
	}
	if len(who) == 0 {
		return fmt.Sprintf("%s: no lock in %s", p.Step, quantity.Of(p.Tries, "try", "tries"))
	}
	return fmt.Sprintf("%s: no lock in %s, held by %s", p.Step, quantity.Of(p.Tries, "try", "tries"), strings.Join(who, "; "))
}

// Blocker is a database session that holds a lock maintenance wants.
type Blocker struct {
	PID   int // 0: a prepared transaction
	State string
	Query string // the first 200 bytes; empty without the right to see it
	Since time.Time
}

func (b Blocker) String() string {
	return fmt.Sprintf("pid %d (%s since %s: %s)", b.PID, b.State, b.Since.UTC().Format(time.RFC3339), b.Query)
}

// Ahead says how far a table's partitions are made ahead.
type Ahead struct {
	Table      string
	Partitions int           // partitions whose time has yet to come, without the open-ended one
	Until      time.Duration // until ids fall into the open-ended one; negative: they do
}
