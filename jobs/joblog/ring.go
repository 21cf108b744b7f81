package joblog

// ring is the tail of a run as it stands in the table: segments of neighbouring chunks, oldest first. What it gives up is
// always one range of ids, between the head and the oldest segment kept.
type ring struct {
	segments []segment
	bytes    int64
	given    segment // given up, and not yet deleted
}

// segment is a range of ids of tail chunks.
type segment struct {
	first, last int64
	bytes       int64
}

// add appends a chunk, to the last segment while that stays within a chunk's size.
func (r *ring) add(id int64, n, segmentBytes int) {
	r.bytes += int64(n)
	if last := len(r.segments) - 1; last >= 0 && r.segments[last].bytes+int64(n) <= int64(segmentBytes) {
		r.segments[last].last = id
		r.segments[last].bytes += int64(n)
		return
	}
	r.segments = append(r.segments, segment{first: id, last: id, bytes: int64(n)})
}

// trim gives up the oldest segments as long as keep bytes remain.
func (r *ring) trim(keep int64) {
	n := 0
	for n < len(r.segments) && r.bytes-r.segments[n].bytes >= keep {
		s := r.segments[n]
		r.bytes -= s.bytes
		if r.given.bytes == 0 {
			r.given.first = s.first
		}
		r.given.last = s.last
		r.given.bytes += s.bytes
		n++
	}
	if n > 0 {
		r.segments = append(r.segments[:0:0], r.segments[n:]...)
	}
}

// takeGiven returns what was given up since the last call.
func (r *ring) takeGiven() segment {
	s := r.given
	r.given = segment{}
	return s
}

// giveBack takes back what could not be deleted, to try again later.
func (r *ring) giveBack(s segment) {
	if r.given.bytes > 0 {
		s.last = r.given.last
		s.bytes += r.given.bytes
	}
	r.given = s
}
