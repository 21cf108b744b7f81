package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	// logBytes is how much of a log a page shows, give or take a chunk, and embeddedLog how much the page of a job.
	logBytes    = 256 << 10
	embeddedLog = 64 << 10
	// followPause is the longest time between two looks at a log that is followed: a look is one or two short reads by a primary key. With the writer's
	// quarter of a second a line is shown within half a second.
	followPause = 150 * time.Millisecond
	// runsToChoose is how many runs are offered to choose from; others are named by their numbers.
	runsToChoose = 100
	// backChunks bounds how many chunks a page may have, where they are tiny.
	backChunks = 2000
)

func (p *Page) mountLog() {
	p.get("/jobs/{id}/log", viewer, p.showLog)
	p.get("/jobs/{id}/log/follow", viewer, p.followLog)
	p.get("/jobs/{id}/log/download", viewer, p.downloadLog)
}

// logChoice says which part of which log, and how it is read.
type logChoice struct {
	Job     int64
	Run     int32
	Streams string // some of o, e, l, p
	Charset string

	base string // where the log is shown, of a node of a run; empty: with the job
}

// Base is the address of the log's page.
func (c logChoice) Base() string {
	if c.base != "" {
		return c.base
	}
	return fmt.Sprintf("/jobs/%d/log", c.Job)
}

// Node is the address of the node's page.
func (c logChoice) Node() string { return strings.TrimSuffix(c.base, "/log") }

// OfNode tells whether it is shown with a node.
func (c logChoice) OfNode() bool { return c.base != "" }

// usualStreams are all but the reports of progress.
const usualStreams = "oel"

func parseLogChoice(r *http.Request) (c logChoice, err error) {
	if c.Job, err = pathID(r, "id"); err != nil {
		return c, err
	}
	return c.parse(r)
}

// parse reads all but the job.
func (c logChoice) parse(r *http.Request) (logChoice, error) {
	query := r.URL.Query()
	run, err := strconv.ParseInt(query.Get("run"), 10, 32)
	if query.Get("run") != "" && (err != nil || run < 1) {
		return c, badInput("%q is no number of a run", query.Get("run"))
	}
	c.Run = int32(max(run, 1)) //nolint:gosec // parsed as 32 bits
	c.Streams, c.Charset = query.Get("stream"), query.Get("charset")
	if c.Streams == "" {
		c.Streams = usualStreams
	}
	if strings.Trim(c.Streams, "oelp") != "" || len(c.Streams) > 4 {
		return c, badInput("stream %q: want some of o, e, l and p", c.Streams)
	}
	if c.Charset == "" {
		c.Charset = charsets[0]
	}
	if !slices.Contains(charsets, c.Charset) {
		return c, badInput("charset %q: want one of %s", c.Charset, strings.Join(charsets, ", "))
	}
	return c, nil
}

// address is a path below the log's with the choice, and further pairs of names and values.
func (c logChoice) address(below string, pairs ...string) string {
	query := url.Values{"run": {strconv.Itoa(int(c.Run))}}
	if c.Streams != usualStreams {
		query.Set("stream", c.Streams)
	}
	if c.Charset != charsets[0] {
		query.Set("charset", c.Charset)
	}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	if c.OfNode() {
		query.Set("job", strconv.FormatInt(c.Job, 10))
	}
	return c.Base() + below + "?" + query.Encode()
}

func (c logChoice) read(ctx context.Context, p *Page, tx joblog.DB, options joblog.Options) iter.Seq2[joblog.Chunk, error] {
	options.Streams = c.Streams
	return joblog.Read(ctx, tx, p.config.Schema, c.Job, int(c.Run), options)
}

// logView is a part of a log.
type logView struct {
	Name   string // tells logs on a page apart
	HTML   template.HTML
	Follow string // where more comes from; empty: the run has ended
	Empty  bool
	Tail   bool  // it is the end
	First  int64 // ids of the first and the last chunk
	Last   int64
	More   bool // there is more after it
	Before bool // and before

	NotBegun string // why there is nothing yet; empty: the run has begun
}

// logPrinter makes HTML of chunks.
type logPrinter struct {
	charset  string
	decoders map[byte]*decoder
	out      strings.Builder
	open     byte // the stream that is being printed; 0: none
}

func newLogPrinter(charset string) *logPrinter {
	return &logPrinter{charset: charset, decoders: map[byte]*decoder{}}
}

// colours are terminal sequences for colour and weight: left out, while all others are shown.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (l *logPrinter) print(c joblog.Chunk) {
	if c.Skipped > 0 {
		l.close()
		fmt.Fprintf(&l.out, "<span class=\"note\">\u2026 %s of stream %c not kept \u2026\n</span>", byteCount(c.Skipped), c.Stream)
		delete(l.decoders, c.Stream)
	}
	d := l.decoders[c.Stream]
	if d == nil {
		d = &decoder{charset: l.charset}
		l.decoders[c.Stream] = d
	}
	text := visible(colours.ReplaceAll(d.decode(c.Data, c.Pos), nil))
	if len(text) == 0 {
		return
	}
	if l.open != c.Stream {
		l.close()
		if class, ok := map[byte]string{joblog.Stderr: "err", joblog.LogLines: "line", joblog.Reports: "note"}[c.Stream]; ok {
			l.out.WriteString(`<span class="` + class + `">`)
			l.open = c.Stream
		}
	}
	template.HTMLEscape(&l.out, text)
}

func (l *logPrinter) close() {
	if l.open != 0 {
		l.out.WriteString("</span>")
		l.open = 0
	}
}

// take returns what was printed since it was asked last.
func (l *logPrinter) take() string {
	l.close()
	text := l.out.String()
	l.out.Reset()
	return text
}

// logPart reads about so many bytes from after a chunk on; the last of the page is a whole chunk, so that the next begins after it.
func (p *Page) logPart(ctx context.Context, tx pgx.Tx, c logChoice, options joblog.Options, size int) (v logView, err error) {
	printer := newLogPrinter(c.Charset)
	total := 0
	for chunk, err := range c.read(ctx, p, tx, options) {
		if err != nil {
			return v, err
		}
		if total >= size {
			v.More = true
			break
		}
		if v.First == 0 {
			v.First = chunk.ID
		}
		v.Last = chunk.ID
		total += len(chunk.Data)
		printer.print(chunk)
	}
	v.Empty = v.Last == 0
	v.HTML = template.HTML(printer.take()) //nolint:gosec // the printer escapes
	return v, nil
}

// logTail is the end of a log, followed while the run goes on.
func (p *Page) logTail(ctx context.Context, job int64, run int32, size int) (v logView, err error) {
	c := logChoice{Job: job, Run: run, Streams: usualStreams, Charset: charsets[0]}
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		v, err = p.logEnd(ctx, tx, c, size)
		return err
	})
	return v, err
}

func (p *Page) logEnd(ctx context.Context, tx pgx.Tx, c logChoice, size int) (logView, error) {
	ended, err := joblog.Ended(ctx, tx, p.config.Schema, c.Job, int(c.Run))
	if err != nil {
		return logView{}, err
	}
	end, err := joblog.Ceiling(ctx, tx, p.config.Schema)
	if err != nil {
		return logView{}, err
	}
	start, err := p.logBefore(ctx, tx, c, end, size)
	if err != nil {
		return logView{}, err
	}
	v, err := p.logPart(ctx, tx, c, joblog.Options{After: max(start-1, 0)}, 4*size)
	if err != nil {
		return v, err
	}
	if v.First != 0 {
		before, err := p.logBefore(ctx, tx, c, v.First, 1)
		if err != nil {
			return v, err
		}
		v.Before = before != 0
	}
	v.Name, v.Tail = c.address(""), !v.More
	if !ended && !v.More {
		v.Follow = c.address("/follow", "after", strconv.FormatInt(v.Last, 10))
	}
	return v, nil
}

// logBefore is the first chunk of about so many bytes before one; 0: there is none.
func (p *Page) logBefore(ctx context.Context, tx pgx.Tx, c logChoice, chunk int64, size int) (start int64, err error) {
	err = tx.QueryRow(ctx, p.sql.Get("log_before"), pgx.QueryExecModeExec, c.Job, c.Run, chunk, strings.Split(c.Streams, ""), int64(size),
		min(size, backChunks)). // no chunk is empty
		Scan(&start)
	return start, err
}

// logPage is a page of a log.
type logPage struct {
	logChoice
	logView

	Charsets       []string
	Sizes          []joblog.Size // of the newest runs, and the one that is shown
	Jump           string
	Finds          logFinds // of a search
	Matches        []logMatch
	Head, Tail     string
	Previous, Next string
	Download       string
}

// Runs are the numbers of the newest runs that have a log, the newest first.
func (v *logPage) Runs() []int {
	var runs []int
	for _, s := range v.Sizes {
		runs = append(runs, s.Run)
	}
	return slices.Compact(runs)
}

// Printed is what the run has printed in all, and Stored what is kept of it.
func (v *logPage) Printed() (n int64) { return v.size(func(s joblog.Size) int64 { return s.Printed }) }

// Stored is what is kept.
func (v *logPage) Stored() (n int64) { return v.size(func(s joblog.Size) int64 { return s.Stored }) }

func (v *logPage) size(of func(joblog.Size) int64) (n int64) {
	for _, s := range v.Sizes {
		if s.Run == int(v.Run) && strings.Contains(v.Streams, s.Stream) {
			n += of(s)
		}
	}
	return n
}

// Part is the part of the log that is shown.
func (v *logPage) Part() logView { return v.logView }

func (p *Page) showLog(w http.ResponseWriter, r *http.Request) error {
	c, err := parseLogChoice(r)
	if err != nil {
		return err
	}
	return p.showChosenLog(w, r, c)
}

func (p *Page) showChosenLog(w http.ResponseWriter, r *http.Request, c logChoice) (err error) {
	query := r.URL.Query()
	v := logPage{logChoice: c, Charsets: charsets, Jump: query.Get("to")}
	if v.Finds, err = newLogFinds(query); err != nil {
		return err
	}
	after, err := chunkID(query, "after")
	if err != nil {
		return err
	}
	seen, err := chunkID(query, "seen")
	if err != nil {
		return err
	}
	before, err := chunkID(query, "before")
	if err != nil {
		return err
	}
	jump, err := parseMoment("to", v.Jump, time.Now())
	if err != nil {
		return err
	}
	if !jump.IsZero() {
		after = max(idAt(jump)-1, 0)
	}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if v.Sizes, err = p.logSizes(ctx, tx, c); err != nil {
			return err
		}
		switch {
		case v.Finds.Query != "":
			v.Finds.Of = v.Stored()
			if v.Finds.Before > 0 {
				v.Finds.Pager.First = v.address("", "q", v.Finds.Query)
			}
			return p.searchLog(ctx, tx, &v, logPlace{after, seen}, searchTime(query))
		case query.Has("after") || !jump.IsZero():
			v.logView, err = p.logPart(ctx, tx, c, joblog.Options{After: after}, logBytes)
			v.Before = after > 0
		case before > 0:
			var start int64
			if start, err = p.logBefore(ctx, tx, c, before, logBytes); err != nil {
				return err
			}
			v.logView, err = p.logPart(ctx, tx, c, joblog.Options{After: max(start-1, 0)}, logBytes)
			v.Before = start > 0
		default:
			v.logView, err = p.logEnd(ctx, tx, c, logBytes)
		}
		if err == nil && v.Empty {
			v.NotBegun, err = p.notBegun(ctx, tx, c)
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Head, v.Tail, v.Download = c.address("", "after", "0"), c.address(""), c.address("/download")
	if v.Before && v.First > 0 {
		v.Previous = c.address("", "before", strconv.FormatInt(v.First, 10))
	}
	if v.More {
		v.Next = c.address("", "after", strconv.FormatInt(v.Last, 10))
	}
	return p.render(w, r, "log", fmt.Sprintf("Log of job %d, run %d", c.Job, c.Run), &v)
}

// notBegun says that the run of a log has not begun, or never did, and what the job waits for; empty: it has, or there is no such run.
func (p *Page) notBegun(ctx context.Context, tx pgx.Tx, c logChoice) (string, error) {
	job, err := p.config.Jobs.JobGetTx(ctx, tx, c.Job)
	if errors.Is(err, rivertype.ErrNotFound) { // logs outlive their jobs
		return "", nil
	}
	if err != nil || job.State == rivertype.JobStateRunning {
		return "", err
	}
	runs, err := p.jobRuns(ctx, tx, c.Job, c.Run+1, 1, "")
	if err != nil {
		return "", err
	}
	text := "This run had not begun when the page was made."
	switch known := len(runs) > 0 && runs[0].Run == c.Run; {
	case known && runs[0].StartedAt != nil, !known && c.Run > 1:
		return "", nil
	case ended(string(job.State)):
		return fmt.Sprintf("This run never began: the job is %s.", job.State), nil
	case known: // it was taken back, and another one waits
		text = fmt.Sprintf("This run never began: it was %s.", runs[0].Outcome)
	}
	text += " The job " + document.NextRun(job) + "."
	why, err := p.config.Jobs.KindWaitsTx(ctx, tx, job.Kind, job.Queue)
	if why != "" {
		text += " It waits: " + why + "."
	}
	return text, err
}

// logSizes tells how much the newest runs of a job printed, the newest first, and then the one that is shown.
func (p *Page) logSizes(ctx context.Context, tx pgx.Tx, c logChoice) ([]joblog.Size, error) {
	sizes, err := joblog.SizesBefore(ctx, tx, p.config.Schema, c.Job, joblog.AnyRun, runsToChoose)
	if err != nil || len(sizes) == 0 || sizes[len(sizes)-1].Run <= int(c.Run) {
		return sizes, err
	}
	one, err := joblog.SizesBefore(ctx, tx, p.config.Schema, c.Job, int64(c.Run)+1, 1)
	return append(sizes, one...), err
}

func chunkID(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, badInput("%s: %q is no place in a log", name, text)
	}
	return id, nil
}

// followLog streams what a run prints from now on. Each event has the id of its chunk: the script gives it as "after" when it comes back.
func (p *Page) followLog(w http.ResponseWriter, r *http.Request) error {
	c, err := parseLogChoice(r)
	if err != nil {
		return err
	}
	return p.followChosenLog(w, r, c, func(r *http.Request) error { return viewer(r.Context()) })
}

func (p *Page) followChosenLog(w http.ResponseWriter, r *http.Request, c logChoice, check func(*http.Request) error) error {
	after, err := chunkID(r.URL.Query(), "after")
	if err != nil {
		return err
	}
	return p.stream(w, r, check, func(ctx context.Context, send sender) error {
		ended := func(ctx context.Context) (bool, error) {
			return joblog.Ended(ctx, p.config.Pool, p.config.Schema, c.Job, int(c.Run))
		}
		printer := newLogPrinter(c.Charset)
		options := joblog.Options{Streams: c.Streams, After: max(after-1, 0), Pause: followPause}
		for chunk, err := range joblog.Follow(ctx, p.config.Pool, p.config.Schema, c.Job, int(c.Run), options, ended) {
			if err != nil {
				return err
			}
			printer.print(chunk)
			text := printer.take()
			if text == "" || chunk.ID <= after { // the last chunk that is shown already may end within a character
				continue
			}
			if err := send("more", strconv.FormatInt(chunk.ID, 10), []byte(text)); err != nil {
				return err
			}
		}
		return nil
	})
}

// downloadLog sends a log's bytes as they are; where some were not kept there is a line that says so.
func (p *Page) downloadLog(w http.ResponseWriter, r *http.Request) error {
	c, err := parseLogChoice(r)
	if err != nil {
		return err
	}
	return p.downloadChosenLog(w, r, c)
}

func (p *Page) downloadChosenLog(w http.ResponseWriter, r *http.Request, c logChoice) error {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=job-%d-run-%d.log", c.Job, c.Run))
	out := &slowWriter{w: w, control: http.NewResponseController(w)}
	err := joblog.Copy(out, c.read(r.Context(), p, p.config.Pool, joblog.Options{}))
	if err != nil && out.begun {
		p.config.Logger.WarnContext(r.Context(), "a download was cut off", "job_id", c.Job, "error", err)
		panic(http.ErrAbortHandler) // so that the browser knows that it is not whole
	}
	if err != nil {
		h.Del("Content-Disposition")
	}
	return err
}

// slowWriter gives each write its own time.
type slowWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

func (s *slowWriter) Write(data []byte) (int, error) {
	s.begun = true
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, errors.Join(errGone, err)
	}
	return s.w.Write(data)
}
