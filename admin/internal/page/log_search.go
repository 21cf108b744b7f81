package page

import (
	"bytes"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	// logMatches is how many lines fill a page of a search in logs; then those of the same chunk are shown too.
	logMatches = 200
	// logMatchesMost is how many a page shows at most; of what is left out it tells the number.
	logMatchesMost = 2000
	// openChunks is for how many chunks of a log the end of a line is waited for.
	openChunks = 256
	// longestLine is where a line is cut.
	longestLine = 256 << 10
	// beforeShown and afterShown are how much of a line is shown on both sides of what was searched for.
	beforeShown, afterShown = 200, 400
)

// searchTime is how long a request may search, about: little for what somebody waits for, more for what goes on by itself or by the link of that.
func searchTime(query url.Values) time.Duration {
	if query.Get("further") != "" {
		return furtherSearch
	}
	return firstSearch
}

// newLogFinds is the state of a search as its request's query says.
func newLogFinds(query url.Values) (f logFinds, err error) {
	f.Query, f.FullAt = query.Get("q"), logMatches
	if text := query.Get("looked"); text != "" {
		if f.Before, err = strconv.ParseInt(text, 10, 64); err != nil || f.Before < 0 {
			return f, badInput("looked: %q is no number of bytes", text)
		}
	}
	f.Looked = f.Before
	return f, nil
}

// logFinds is how far a search in logs came. The template "logFinds" shows it.
type logFinds struct {
	Query   string
	Shown   int       // lines
	Left    int       // further lines, beside the last one, that are not shown
	Before  int64     // bytes that were looked at before this page
	Looked  int64     // and with it
	Of      int64     // that there are; 0: not known
	Reached string    // the last place that was looked at, of a run's logs
	At      time.Time // when the last chunk that was looked at was stored, of a job's log
	More    bool      // there is more to look at
	Full    bool      // a page is full
	FullAt  int       // so many lines
	Further string    // where the search goes on by itself
	Pager   pager
}

// goOn notes where the search goes on: at pairs of names and values for the request's address.
func (f *logFinds) goOn(address func(pairs ...string) string, pairs ...string) {
	f.More, f.Full = true, f.Shown >= logMatches
	pairs = append(pairs, "looked", strconv.FormatInt(f.Looked, 10))
	if f.Full {
		f.Pager.Next = address(pairs...)
	} else {
		f.Further = address(append(pairs, "further", "1")...)
	}
}

// logMatch is a line of a job's log that was found.
type logMatch struct {
	logLine

	Where string // the page of the log that begins with it
}

// logPlace is where a search in a run's log goes on.
type logPlace struct {
	After int64 // the chunk behind which it reads
	Seen  int64 // lines that end in chunks up to it have been searched before
}

// searchLog looks for lines that hold a text until a page is full, there are no more, or the time is up.
func (p *Page) searchLog(ctx context.Context, tx pgx.Tx, v *logPage, from logPlace, within time.Duration) error {
	until := time.Now().Add(within)
	s := newLineSearch(&v.Finds, v.Charset, from.Seen, func(line logLine) {
		v.Matches = append(v.Matches, logMatch{line, v.address("", "after", strconv.FormatInt(line.From-1, 10))})
	})
	for chunk, err := range v.read(ctx, p, tx, joblog.Options{After: from.After}) {
		if err != nil {
			return err
		}
		if s.enough(until) {
			address := func(pairs ...string) string { return v.address("", append(pairs, "q", v.Finds.Query)...) }
			place := s.place()
			v.Finds.goOn(address, "after", strconv.FormatInt(place.After, 10), "seen", strconv.FormatInt(place.Seen, 10))
			return nil
		}
		s.add(chunk)
		v.Finds.At = chunk.At
	}
	s.end()
	return nil
}

// logLine is a line that was found.
type logLine struct {
	Before, Match, After string
	From                 int64     // the chunk that it begins in
	At                   time.Time // when the chunk that it ends in was stored
}

// lineSearch looks for a text in the lines of one run's log, in small letters or capitals, chunk by chunk.
type lineSearch struct {
	wanted  []byte // in small letters
	charset string
	seen    int64 // lines that end in chunks up to it have been searched before: these chunks are only read for the beginnings of later ones
	finds   *logFinds
	found   func(logLine)

	buffers map[byte]*lineBuffer // by stream
	last    int64                // the chunk that was read last
	no      int                  // how many were read
	lower   []byte               // kept, so that not each chunk needs another
}

// lineBuffer cuts the chunks of a stream into lines.
type lineBuffer struct {
	decoder decoder
	next    int64  // position of the next chunk, if nothing is missing
	open    []byte // a line whose end has not come yet
	from    int64  // the chunk it began in
	no      int    // how many chunks had been read then
	at      time.Time
}

func newLineSearch(finds *logFinds, charset string, seen int64, found func(logLine)) *lineSearch {
	wanted := []byte(finds.Query)
	if plain := colours.ReplaceAll(wanted, nil); len(plain) > 0 { // lines are searched without colours
		wanted = plain
	}
	return &lineSearch{wanted: lowered(nil, wanted), charset: charset, seen: seen, finds: finds, found: found, buffers: map[byte]*lineBuffer{}}
}

// enough tells whether a page is full, or the time is up and something new was looked at.
func (s *lineSearch) enough(until time.Time) bool {
	return s.finds.Shown >= logMatches || s.last > s.seen && time.Now().After(until)
}

// place is where a further search goes on: it reads from the first of the lines on whose ends have not come yet.
func (s *lineSearch) place() logPlace {
	next := s.last + 1
	for _, b := range s.buffers {
		if len(b.open) > 0 {
			next = min(next, b.from)
		}
	}
	return logPlace{After: next - 1, Seen: s.last}
}

// add searches the lines that end in the next chunk.
func (s *lineSearch) add(c joblog.Chunk) {
	s.last = c.ID
	s.no++
	if s.last > s.seen {
		s.finds.Looked += int64(len(c.Data))
	}
	b := s.buffers[c.Stream]
	gap := b != nil && c.Pos != b.next
	for _, other := range s.buffers {
		if other.no+openChunks < s.no || other == b && gap {
			s.rest(other)
		}
	}
	if b == nil || gap {
		b = &lineBuffer{decoder: decoder{charset: s.charset}}
		s.buffers[c.Stream] = b
	}
	b.at, b.next = c.At, c.Pos+int64(len(c.Data))
	text := b.decoder.decode(c.Data, c.Pos)
	if len(b.open) > 0 {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		b.open = append(b.open, text[:end]...)
		text = text[end:]
		if b.open[len(b.open)-1] != '\n' && len(b.open) < longestLine {
			return
		}
		s.rest(b)
	}
	end := bytes.LastIndexByte(text, '\n') + 1
	s.lines(text[:end], c.ID, c.At)
	b.open, b.from, b.no = append(b.open, text[end:]...), c.ID, s.no
}

// end searches the lines without an end, as if they ended here.
func (s *lineSearch) end() {
	for _, b := range s.buffers {
		s.rest(b)
	}
}

// rest searches the line that is open as if it ended here.
func (s *lineSearch) rest(b *lineBuffer) {
	s.lines(b.open, b.from, b.at)
	b.open = b.open[:0]
}

// lines searches lines that begin in a chunk, and end in the last one.
func (s *lineSearch) lines(text []byte, from int64, at time.Time) {
	if s.last <= s.seen || len(text) == 0 {
		return
	}
	if bytes.IndexByte(text, '\x1b') >= 0 {
		text = colours.ReplaceAll(text, nil)
	}
	s.lower = lowered(s.lower, text)
	for next := 0; next < len(text); {
		place := bytes.Index(s.lower[next:], s.wanted)
		if place < 0 {
			return
		}
		place += next
		begin, end := bytes.LastIndexByte(text[:place], '\n')+1, len(text)
		if n := bytes.IndexByte(text[place:], '\n'); n >= 0 {
			end = place + n
		}
		next = max(end, place+1)
		if s.finds.Shown >= logMatchesMost {
			s.finds.Left++
			continue
		}
		s.finds.Shown++
		after := min(end, place+len(s.wanted))
		rest := bytes.TrimSuffix(text[after:end], []byte("\r"))
		s.found(logLine{Before: cutLeft(text[begin:place]), Match: valid(text[place:after]), After: cutRight(rest), From: from, At: at})
	}
}

// lowered is data with small letters, in lower's memory if that is enough. All places are kept: a letter whose small one has another length stays as it is.
func lowered(lower, data []byte) []byte {
	lower = append(lower[:0], data...)
	for i := 0; i < len(lower); {
		c := lower[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				lower[i] = c + 'a' - 'A'
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(lower[i:])
		if small := unicode.ToLower(r); utf8.RuneLen(small) == size {
			utf8.EncodeRune(lower[i:], small)
		}
		i += size
	}
	return lower
}

func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

func cutLeft(text []byte) string {
	if from := len(text) - beforeShown; from > 0 {
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		return "\u2026" + valid(text[from:])
	}
	return valid(text)
}

func cutRight(text []byte) string {
	if to := afterShown; len(text) > to {
		for to > 0 && !utf8.RuneStart(text[to]) {
			to--
		}
		return valid(text[:to]) + "\u2026"
	}
	return valid(text)
}
