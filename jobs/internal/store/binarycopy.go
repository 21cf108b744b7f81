package store

import (
	"encoding/binary"
	"io"
	"time"
)

// binaryCopy feeds rows to COPY in its binary format (PostgreSQL's documentation of COPY, "Binary Format"), encoding them while
// they are read, so that a bulk of large args is never held twice. The general encoder of pgx costs several times as much per row.
type binaryCopy struct {
	buf  []byte
	off  int
	rows int
	next int
	row  func(b []byte, i int) []byte // appends row i
	done bool
}

// copyChunk is how many encoded bytes are made ahead.
const copyChunk = 64 << 10

func newBinaryCopy(rows int, row func(b []byte, i int) []byte) *binaryCopy {
	c := &binaryCopy{rows: rows, row: row, buf: make([]byte, 0, copyChunk+copyChunk/4)}
	c.buf = append(c.buf, "PGCOPY\n\xff\r\n\x00"...)
	c.buf = binary.BigEndian.AppendUint64(c.buf, 0) // no flags, no extension
	return c
}

// Read implements io.Reader.
func (c *binaryCopy) Read(p []byte) (int, error) {
	if c.off == len(c.buf) && !c.fill() {
		return 0, io.EOF
	}
	n := copy(p, c.buf[c.off:])
	c.off += n
	return n, nil
}

func (c *binaryCopy) fill() bool {
	if c.done {
		return false
	}
	c.buf, c.off = c.buf[:0], 0
	for c.next < c.rows && len(c.buf) < copyChunk {
		c.buf = c.row(c.buf, c.next)
		c.next++
	}
	if c.next == c.rows {
		c.buf = appendInt16(c.buf, -1)
		c.done = true
	}
	return true
}

func appendInt16(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) }
func appendInt32(b []byte, v int) []byte   { return binary.BigEndian.AppendUint32(b, uint32(int32(v))) }
func appendInt64(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

func appendNull(b []byte) []byte              { return appendInt32(b, -1) }
func appendSmallint(b []byte, v int16) []byte { return appendInt16(appendInt32(b, 2), v) }
func appendBigint(b []byte, v int64) []byte   { return appendInt64(appendInt32(b, 8), v) }
func appendText(b []byte, v string) []byte    { return append(appendInt32(b, len(v)), v...) }
func appendTime(b []byte, v time.Time) []byte { return appendBigint(b, v.UnixMicro()-epoch2000) }
func appendJSONB(b []byte, v []byte) []byte   { return append(append(appendInt32(b, len(v)+1), 1), v...) }

func appendArrayHead(b []byte, element uint32, n int) []byte {
	b = appendInt32(appendInt32(b, 1), 0) // one dimension, no NULLs
	b = binary.BigEndian.AppendUint32(b, element)
	return appendInt32(appendInt32(b, n), 1) // its length, and the first subscript
}

// epoch2000 is where Postgres' times begin, in microseconds of Unix time.
const epoch2000 = 946684800 * 1_000_000

// Oids of array elements.
const (
	oidBigint = 20
	oidText   = 25
)

func appendBigints(b []byte, v []int64) []byte {
	b = appendArrayHead(appendInt32(b, 20+12*len(v)), oidBigint, len(v))
	for _, id := range v {
		b = appendBigint(b, id)
	}
	return b
}

func appendTexts(b []byte, v []string) []byte {
	size := 20
	for _, s := range v {
		size += 4 + len(s)
	}
	b = appendArrayHead(appendInt32(b, size), oidText, len(v))
	for _, s := range v {
		b = appendText(b, s)
	}
	return b
}
