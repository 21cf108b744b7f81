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
	// logMatches is how many lines a search shows.
	logMatches = 200
	// logSearchTime is how long a log is searched at once.
	logSearchTime = time.Second
)

// logMatch is a line of a log that was searched for.
type logMatch struct {
	At    time.Time
	Where string // the page of the log that begins with it
	Text  string
}

// matchShown is how much of a line is shown.
const matchShown = 500

// searchLog looks for lines that hold a text, in small letters or capitals, until it has found enough or the time is up.
func (p *Page) searchLog(ctx context.Context, tx pgx.Tx, v *logPage, after int64) error {
	v.Searched = true
	wanted := []byte(strings.ToLower(v.Query))
	lines := map[byte]*lineBuffer{}
	began, last := time.Now(), int64(0)
	for chunk, err := range v.read(ctx, p, tx, joblog.Options{After: after}) {
		if err != nil {
			return err
		}
		if len(v.Matches) >= logMatches || last != 0 && time.Since(began) > logSearchTime {
			v.Further = v.address("", "q", v.Query, "after", strconv.FormatInt(last, 10))
			return nil
		}
		last = chunk.ID
		b := lines[chunk.Stream]
		if b == nil || chunk.Skipped > 0 {
			b = &lineBuffer{decoder: decoder{charset: v.Charset}}
			lines[chunk.Stream] = b
		}
		b.add(chunk, func(line []byte, from int64) { v.match(line, from, chunk.At, wanted) })
	}
	for _, b := range lines {
		b.rest(func(line []byte, from int64) { v.match(line, from, b.at, wanted) })
	}
	return nil
}

func (v *logPage) match(line []byte, from int64, at time.Time, wanted []byte) {
	if len(v.Matches) > 2*logMatches || !bytes.Contains(bytes.ToLower(line), wanted) {
		return
	}
	text := strings.ToValidUTF8(string(colours.ReplaceAll(line[:min(len(line), matchShown)], nil)), "\uFFFD")
	v.Matches = append(v.Matches, logMatch{At: at, Where: v.address("", "after", strconv.FormatInt(from-1, 10)), Text: text})
}

// lineBuffer cuts the chunks of a stream into lines. A line is at most as long as some chunks.
type lineBuffer struct {
	decoder decoder
	open    []byte // a line whose end has not come yet
	from    int64  // the chunk it began in
	at      time.Time
}

// longestLine is where a line is cut.
const longestLine = 256 << 10

func (b *lineBuffer) add(c joblog.Chunk, line func(text []byte, from int64)) {
	b.at = c.At
	text := b.decoder.decode(c.Data, c.Pos)
	for {
		part, rest, ends := bytes.Cut(text, []byte("\n"))
		if len(b.open) == 0 {
			b.from = c.ID
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

func (b *lineBuffer) rest(line func(text []byte, from int64)) {
	if len(b.open) > 0 {
		line(b.open, b.from)
	}
}
