package page

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	// logMatches is how many lines a search shows, and then those of the same chunk too.
	logMatches = 200
	// logMatchesMost is how many it shows at most; of what is left out it tells the number.
	logMatchesMost = 2000
	// logSearchTime is how long a log is searched at once.
	logSearchTime = time.Second
	// openChunks is for how many chunks of the log the end of a line is waited for.
	openChunks = 256
)

// logMatch is a line of a log that was searched for.
type logMatch struct {
	At    time.Time
	Where string // the page of the log that begins with it
	Text  string
}

// matchShown is how much of a line is shown.
const matchShown = 500

// searchLog looks for lines that hold a text, in small letters or capitals, until it has found enough or the time is up. Lines that end in
// chunks up to seen have been searched before: they are only read for the beginnings of later ones.
func (p *Page) searchLog(ctx context.Context, tx pgx.Tx, v *logPage, after, seen int64) error {
	v.Searched = true
	wanted := []byte(strings.ToLower(v.Query))
	lines := map[byte]*lineBuffer{}
	began, last, no := time.Now(), int64(0), 0
	for chunk, err := range v.read(ctx, p, tx, joblog.Options{After: after}) {
		if err != nil {
			return err
		}
		if len(v.Matches) >= logMatches || last > seen && time.Since(began) > logSearchTime {
			v.Further = v.address("", "q", v.Query, "after", strconv.FormatInt(oldest(lines, last+1)-1, 10), "seen", strconv.FormatInt(last, 10))
			return nil
		}
		last = chunk.ID
		no++
		match := func(b *lineBuffer) lineFunc {
			return func(line []byte, from int64) {
				if last > seen {
					v.match(line, from, b.at, wanted)
				}
			}
		}
		for _, b := range lines {
			if b.no+openChunks < no || b.stream == chunk.Stream && chunk.Skipped > 0 {
				b.rest(match(b))
			}
		}
		b := lines[chunk.Stream]
		if b == nil || chunk.Skipped > 0 {
			b = &lineBuffer{stream: chunk.Stream, decoder: decoder{charset: v.Charset}}
			lines[chunk.Stream] = b
		}
		b.add(chunk, no, match(b))
	}
	for _, b := range lines {
		b.rest(func(line []byte, from int64) { v.match(line, from, b.at, wanted) })
	}
	return nil
}

// oldest is the first chunk of the lines whose ends have not come yet, or next.
func oldest(lines map[byte]*lineBuffer, next int64) int64 {
	for _, b := range lines {
		if len(b.open) > 0 {
			next = min(next, b.from)
		}
	}
	return next
}

func (v *logPage) match(line []byte, from int64, at time.Time, wanted []byte) {
	if !bytes.Contains(bytes.ToLower(line), wanted) {
		return
	}
	if len(v.Matches) >= logMatchesMost {
		v.Left++
		return
	}
	text := strings.ToValidUTF8(string(colours.ReplaceAll(line[:min(len(line), matchShown)], nil)), "\uFFFD")
	v.Matches = append(v.Matches, logMatch{At: at, Where: v.address("", "after", strconv.FormatInt(from-1, 10)), Text: text})
}

// lineBuffer cuts the chunks of a stream into lines. A line is at most as long as some chunks.
type lineBuffer struct {
	stream  byte
	decoder decoder
	open    []byte // a line whose end has not come yet
	from    int64  // the chunk it began in
	no      int    // how many chunks had been read then
	at      time.Time
}

// lineFunc is called with a line and the chunk that it began in.
type lineFunc func(text []byte, from int64)

// longestLine is where a line is cut.
const longestLine = 256 << 10

// add takes the no-th chunk that is read.
func (b *lineBuffer) add(c joblog.Chunk, no int, line lineFunc) {
	b.at = c.At
	text := b.decoder.decode(c.Data, c.Pos)
	for {
		part, rest, ends := bytes.Cut(text, []byte("\n"))
		if len(b.open) == 0 {
			b.from, b.no = c.ID, no
		}
		if !ends && len(b.open)+len(part) < longestLine {
			b.open = append(b.open, part...)
			return
		}
		line(append(b.open, part...), b.from)
		b.open = b.open[:0]
		if !ends {
			return
		}
		text = rest
	}
}

// rest takes the line that is open as if it ended here.
func (b *lineBuffer) rest(line lineFunc) {
	if len(b.open) > 0 {
		line(b.open, b.from)
		b.open = b.open[:0]
	}
}
