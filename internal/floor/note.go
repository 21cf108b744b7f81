package floor

import (
	"slices"
	"time"
)

// note is a position and those who could still commit a row at or below it when it was read. Pure: it is fed with looks.
type note struct {
	after    Row // the newest row when the note was made
	position int64
	waiting  []string
	seen     [2][]string // prepared transactions of the last two looks, the older one first
	made     time.Time
}

// newNote notes a position. The holders must have been read after it.
func newNote(after Row, position int64, h Holders, now time.Time) *note {
	n := &note{after: after, position: position, seen: [2][]string{h.Prepared, h.Prepared}, made: now}
	n.after.Instance = h.Instance
	for _, writer := range slices.Concat(h.Open, h.Prepared) {
		if !slices.ContainsFunc(after.Passed, func(p Passed) bool { return p.Writer == writer }) {
			n.waiting = append(n.waiting, writer)
		}
	}
	return n
}

// look drops the writers that have ended. When one vanished, a prepared transaction that appeared in this look or in the last
// one may be its continuation, and is waited for in its place. In the last one too, because a look is not one moment: the server
// reads the locks that backends keep to themselves first, so a look can show a writer beside its own continuation.
func (n *note) look(h Holders) {
	left := slices.DeleteFunc(slices.Clone(n.waiting), func(writer string) bool { return !h.has(writer) })
	if len(left) < len(n.waiting) {
		for _, writer := range h.Prepared {
			if !slices.Contains(n.seen[0], writer) && !slices.Contains(left, writer) {
				left = append(left, writer)
			}
		}
	}
	n.waiting, n.seen = left, [2][]string{n.seen[1], h.Prepared}
}

// settled is the row to publish when nobody is waited for, or those still open are passed. What a writer passed now has written
// lies above the position settled before: it held no lock when that was noted, or it would be among those passed then.
func (n *note) settled() Row {
	row := Row{Instance: n.after.Instance, Settled: n.position, Passed: slices.Clone(n.after.Passed)}
	for _, writer := range n.waiting {
		row.Passed = append(row.Passed, Passed{Writer: writer, LookFrom: n.after.Settled + 1})
	}
	return row
}

// watch tells what to publish about passed writers of the newest row, nil if all are still open. Those that ended are
// looked for; any prepared transaction may continue one of them, and is watched in its place, from no later a position.
func watch(newest Row, h Holders) *Row {
	if len(newest.Passed) == 0 {
		return nil
	}
	var open, ended []Passed
	for _, p := range newest.Passed {
		if newest.Instance.Equal(h.Instance) && h.has(p.Writer) {
			open = append(open, p)
		} else {
			ended = append(ended, p)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	from := lookFrom(ended)
	for _, writer := range h.Prepared {
		switch i := slices.IndexFunc(open, func(p Passed) bool { return p.Writer == writer }); {
		case i < 0:
			open = append(open, Passed{Writer: writer, LookFrom: *from})
		default: // passed in its own right, while the writer it continues was one already
			open[i].LookFrom = min(open[i].LookFrom, *from)
		}
	}
	return &Row{Instance: h.Instance, Settled: newest.Settled, LookFrom: from, Passed: open}
}

// reset is published when the sequence or the clock is behind what was published: all marks go back to the start.
func reset(newest Row, position int64, h Holders) *Row {
	row := watch(newest, h)
	if row == nil {
		row = &Row{Instance: h.Instance, Passed: newest.Passed}
	}
	row.Settled, row.LookFrom = position, new(int64)
	return row
}
