package floor

import (
	"slices"
	"time"
)

// Row is a row of the table floor. The zero value stands for a table without one.
type Row struct {
	No       int64
	Instance time.Time // of the server whose writers were watched
	Settled  int64     // every row up to here is visible or gone, but for the writers passed
	LookFrom *int64    // trackers lower their marks to this when they first read the row
	Passed   []Passed  // writers that were open when Settled was published
}

// Passed is a writer that was passed while open. Its rows lie at or above LookFrom.
type Passed struct {
	Writer   string `json:"writer"`
	LookFrom int64  `json:"look_from"`
}

// Holders are the transactions that hold ROW EXCLUSIVE on a table, by virtual id, at one moment of one instance.
type Holders struct {
	Instance time.Time
	Open     []string
	Prepared []string // for two-phase commit: these end without their virtual id's backend
}

func (h Holders) has(writer string) bool {
	return slices.Contains(h.Open, writer) || slices.Contains(h.Prepared, writer)
}

// lookFrom is the least position to look from of some writers, nil if there are none.
func lookFrom(passed []Passed) *int64 {
	var least *int64
	for _, p := range passed {
		if least == nil || p.LookFrom < *least {
			least = &p.LookFrom
		}
	}
	return least
}
