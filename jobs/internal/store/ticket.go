package store

import "time"

// MaxTicket is the most jobs one ticket holds.
const MaxTicket = 100

// lineKey is a line and a priority: tickets are made per pair.
type lineKey struct {
	line     string
	priority int16
}

// places is where new jobs wait.
type places struct {
	lines     []lineKey // in order of first use
	ids       map[lineKey][]int64
	scheduled []int64
	due       []time.Time // of scheduled
	parked    []int64
}

func sortOut(jobs []NewJob, ids []int64, now time.Time) *places {
	p := &places{ids: map[lineKey][]int64{}}
	for i := range jobs {
		j := &jobs[i]
		switch {
		case j.Pending:
			p.parked = append(p.parked, ids[i])
		case j.Due != nil && j.Due.After(now):
			p.scheduled = append(p.scheduled, ids[i])
			p.due = append(p.due, *j.Due)
		default:
			p.ready(lineKey{j.Queue, j.Priority}, ids[i], len(jobs)-i)
		}
	}
	return p
}

func (p *places) ready(key lineKey, id int64, room int) {
	list, known := p.ids[key]
	if !known {
		p.lines = append(p.lines, key)
		list = make([]int64, 0, room)
	}
	p.ids[key] = append(list, id)
}

// ticketSize is how many of n jobs enqueued together go into one ticket: about n/64, so that small batches still spread.
func ticketSize(n int) int {
	return min(MaxTicket, max(1, n/64))
}

// ticket is one to be.
type ticket struct {
	lineKey

	ids []int64
}

// tickets cuts the ready jobs into tickets, as rows for copy_tickets.
func (p *places) tickets() *binaryCopy {
	var list []ticket
	for _, key := range p.lines {
		ids := p.ids[key]
		size := ticketSize(len(ids))
		for len(ids) > 0 {
			n := min(size, len(ids))
			list = append(list, ticket{key, ids[:n]})
			ids = ids[n:]
		}
	}
	return newBinaryCopy(len(list), func(b []byte, i int) []byte {
		t := &list[i]
		return appendBigints(appendText(appendSmallint(appendInt16(b, 3), t.priority), t.line), t.ids)
	})
}

// names lists the lines.
func (p *places) names() []string {
	var names []string
	for _, key := range p.lines {
		names = append(names, key.line)
	}
	return names
}
