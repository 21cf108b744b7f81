package joblog

import (
	"fmt"
	"time"
)

// The streams of a run.
const (
	Stdout   byte = 'o'
	Stderr   byte = 'e'
	LogLines byte = 'l' // JSON lines of a slog handler
	Reports  byte = 'p' // JSON lines of Run.Progress
)

const streams = 4

// streamIndex panics on a stream that does not exist, which is the caller's mistake.
func streamIndex(kind byte) int {
	switch kind {
	case Stdout:
		return 0
	case Stderr:
		return 1
	case LogLines:
		return 2
	case Reports:
		return 3
	}
	panic(fmt.Sprintf("joblog: no stream %q", kind))
}

// chunk is a piece of one stream, on its way into the table.
type chunk struct {
	run    *spool
	id     int64 // 0 until it is first sent
	pos    int64 // of its first byte in its stream
	born   time.Time
	stream byte
	tail   bool // beyond the head
	data   []byte
}

// epoch is the second that ids count from, 2024-01-01 UTC.
const epoch = 1704067200

// idBits are the low bits of an id, which number within a second.
const idBits = 24

// idAt is the least id of a second, as the schema's id_at.
func idAt(t time.Time) int64 {
	return max(0, t.Unix()-epoch) << idBits
}

// secondOf is the least id of the second in which an id was made.
func secondOf(id int64) int64 {
	return id &^ (1<<idBits - 1)
}
