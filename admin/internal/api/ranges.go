package api

import (
	"strconv"
	"strings"
)

// wanted is a range of bytes that somebody asks for.
type wanted struct {
	from, to int64 // to is the last byte; -1: to the end. from -1: the last to bytes
}

// parseRange reads a Range header; false: it asks for none that is understood, and all is to be sent.
func parseRange(header string) (wanted, bool) {
	text, isBytes := strings.CutPrefix(header, "bytes=")
	first, last, isRange := strings.Cut(text, "-")
	if !isBytes || !isRange || strings.Contains(text, ",") {
		return wanted{}, false
	}
	number := func(text string) (int64, bool) {
		if text == "" {
			return -1, true
		}
		n, err := strconv.ParseUint(text, 10, 62)
		return int64(n), err == nil //nolint:gosec // 62 bits
	}
	from, ok1 := number(first)
	to, ok2 := number(last)
	w := wanted{from, to}
	return w, ok1 && ok2 && (from >= 0 || to >= 0) && (from < 0 || to < 0 || from <= to)
}

// of is the part of so many bytes that is wanted; false: there is none.
func (w wanted) of(total int64) (span, bool) {
	switch {
	case w.from < 0:
		length := min(w.to, total)
		return span{total - length, length}, length > 0
	case w.from >= total:
		return span{}, false
	case w.to < 0:
		return span{w.from, total - w.from}, true
	}
	return span{w.from, min(w.to, total-1) - w.from + 1}, true
}

// span is what is left to send: so many bytes after so many. A negative length is all.
type span struct{ start, length int64 }

// take is the part of the next bytes that is to be sent.
func (s *span) take(data []byte) []byte {
	skip := min(s.start, int64(len(data)))
	s.start -= skip
	data = data[skip:]
	if s.length >= 0 {
		data = data[:min(int64(len(data)), s.length)]
		s.length -= int64(len(data))
	}
	return data
}
