package joblog

import "time"

// maxSwitches is how often between two flushes a run may begin a new chunk because it changed the stream. Beyond that the
// streams' order among each other is given up rather than making a row of each line.
const maxSwitches = 16

// spool is what one run has printed: the chunks not yet sent, and the arithmetic of head and tail. It does no I/O and no
// locking.
type spool struct {
	jobID int64
	run   int32

	pending  []*chunk
	open     [streams]*chunk // the pending chunk of each stream that may still grow
	pos      [streams]int64
	switches int
	bytes    int   // unsent, the batch in flight included
	flying   int   // chunks in flight
	headLeft int64 // bytes that still belong to the head
	lastID   int64
	tail     ring

	report   []byte // the newest progress, waiting for its time
	reported time.Time

	queued bool // in the writer's list of spools to look at
	closed bool
	done   bool // closed, stored and trimmed
}

// write takes over a prefix of p, at most to the end of a chunk, and returns its length.
func (s *spool) write(kind byte, p []byte, chunkBytes int, now time.Time) int {
	i := streamIndex(kind)
	c := s.open[i]
	if c == nil || s.interleaves(c) {
		c = s.begin(kind, now)
	}
	n := min(len(p), chunkBytes-len(c.data))
	if !c.tail {
		n = int(min(int64(n), s.headLeft))
		s.headLeft -= int64(n)
	}
	c.data = append(c.data, p[:n]...)
	s.pos[i] += int64(n)
	s.bytes += n
	if len(c.data) == chunkBytes {
		s.open[i] = nil
	}
	if !c.tail && s.headLeft == 0 {
		clear(s.open[:])
	}
	return n
}

// interleaves tells whether another stream has written since c and a new chunk should show it.
func (s *spool) interleaves(c *chunk) bool {
	if s.pending[len(s.pending)-1] == c || s.switches >= maxSwitches {
		return false
	}
	s.switches++
	return true
}

func (s *spool) begin(kind byte, now time.Time) *chunk {
	i := streamIndex(kind)
	c := &chunk{run: s, pos: s.pos[i], born: now, stream: kind, tail: s.headLeft <= 0}
	s.pending = append(s.pending, c)
	s.open[i] = c
	return c
}

// skip counts bytes of a stream that are not kept.
func (s *spool) skip(kind byte, n int) {
	i := streamIndex(kind)
	s.pos[i] += int64(n)
	s.open[i] = nil
}

// dropMiddle drops an unsent chunk from the middle and returns its size; 0 if there are too few to have a middle.
func (s *spool) dropMiddle() int {
	if len(s.pending) < 3 {
		return 0
	}
	at := len(s.pending) / 2
	c := s.pending[at]
	if i := streamIndex(c.stream); s.open[i] == c {
		s.open[i] = nil
	}
	s.pending = append(s.pending[:at], s.pending[at+1:]...)
	s.bytes -= len(c.data)
	return len(c.data)
}

// take moves chunks to the batch while it has room for more, and returns the bytes taken.
func (s *spool) take(batch *[]*chunk, room, rows int) int {
	taken, n := 0, 0
	for n < len(s.pending) && n < rows && taken+len(s.pending[n].data) <= room {
		taken += len(s.pending[n].data)
		n++
	}
	*batch = append(*batch, s.pending[:n]...)
	s.pending = append(s.pending[:0:0], s.pending[n:]...)
	s.flying += n
	s.switches = 0
	clear(s.open[:]) // a chunk that waits on goes as it is
	return taken
}

// number gives a chunk its id: the present second by the database's clock, but not before the job's own, nor the run's last.
func (s *spool) number(c *chunk, second int64) {
	s.lastID = max(second, secondOf(s.jobID), s.lastID+1)
	c.id = s.lastID
}

// stored notes that a chunk in flight is in the table.
func (s *spool) stored(c *chunk, chunkBytes int, tailBytes int64) {
	s.landed(c)
	if c.tail {
		s.tail.add(c.id, len(c.data), chunkBytes)
		s.tail.trim(tailBytes)
	}
}

// landed notes that a chunk is in flight no longer.
func (s *spool) landed(c *chunk) {
	s.flying--
	s.bytes -= len(c.data)
}

// idle tells whether everything written is stored.
func (s *spool) idle() bool {
	return len(s.pending) == 0 && s.flying == 0 && s.report == nil
}
