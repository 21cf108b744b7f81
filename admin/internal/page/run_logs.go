package page

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

const (
	// A search in logs ends after so many bytes, lines or this time, whichever comes first, and goes on from there when it is asked to.
	searchBytes   = 16 << 20
	searchLines   = 200
	runSearchTime = 500 * time.Millisecond

	jobsAtOnce   = 50
	chunksAtOnce = 32
	longestFound = 400 // bytes of a line that is shown
	longestOpen  = 64 << 10
)

// logPlace is how far a search has come: a node, a job of it (which one), and a run and a chunk in that.
type logPlace struct {
	Node, Job, Run int
	Chunk          int64
}

func (l logPlace) String() string { return fmt.Sprintf("%d.%d.%d.%d", l.Node, l.Job, l.Run, l.Chunk) }

func placeOf(text string) (l logPlace, err error) {
	if text == "" {
		return l, nil
	}
	if n, err := fmt.Sscanf(text, "%d.%d.%d.%d", &l.Node, &l.Job, &l.Run, &l.Chunk); err != nil || n != 4 || l.Node < 0 || l.Job < 0 {
		return l, badInput("%q is no place in the logs", text)
	}
	return l, nil
}

// foundLine is a line with what was searched for.
type foundLine struct {
	No     int
	Path   string
	Job    int64
	Run    int
	Before string
	Match  string
	After  string
}

type logsPage struct {
	Run     runRow
	Search  string
	Found   []foundLine
	Left    int   // further lines beside the last one found
	Looked  int64 // bytes
	Nodes   int   // that it has looked at
	UpTo    string
	Pager   pager
	Ended   bool // all was searched
	Started bool // something was searched for
}

func (p *Page) showRunLogs(w http.ResponseWriter, r *http.Request) error {
	run, err := p.seenRun(r)
	if err != nil {
		return err
	}
	place, err := placeOf(r.URL.Query().Get("after"))
	if err != nil {
		return err
	}
	data := &logsPage{Run: run, Search: r.URL.Query().Get("q")}
	if data.Search != "" {
		data.Started = true
		search := &logSearch{page: data, needle: lowered([]byte(data.Search)), until: time.Now().Add(runSearchTime), at: place}
		err := p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error { return p.search(ctx, tx, search) })
		if err != nil {
			return err
		}
		next := ""
		if data.Ended = search.over; !data.Ended {
			next = search.at.String()
		}
		data.Pager = page(r, next)
	}
	return p.render(w, r, "run_logs", fmt.Sprintf("Logs of run %d", run.ID), data)
}

// logSearch is a search under way.
type logSearch struct {
	page   *logsPage
	needle []byte
	until  time.Time
	at     logPlace // from here on
	over   bool

	node nodeJobs
	job  int64
	run  int
	open map[string][]byte // by stream: a line without its end yet
}

type nodeJobs struct {
	No   int
	Path string
	Jobs []int64
}

func (s *logSearch) full() bool {
	return s.page.Looked >= searchBytes || len(s.page.Found) >= searchLines || time.Now().After(s.until)
}

// search looks through the logs of a run's nodes, in the order of the graph, job by job.
func (p *Page) search(ctx context.Context, tx pgx.Tx, s *logSearch) error {
	for {
		nodes, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeJobs], "flow_node_jobs", s.page.Run.ID, s.at.Node, jobsAtOnce)
		if err != nil {
			return err
		}
		if s.over = len(nodes) == 0; s.over {
			return nil
		}
		for _, node := range nodes {
			if node.No != s.at.Node {
				s.at = logPlace{Node: node.No}
			}
			s.node = node
			if err := p.searchNode(ctx, tx, s); err != nil {
				return err
			}
			s.page.UpTo = node.Path
			if s.at.Node == node.No { // it did not come to the node's end
				return nil
			}
			s.page.Nodes++
			if s.full() {
				return nil
			}
		}
	}
}

func (p *Page) searchNode(ctx context.Context, tx pgx.Tx, s *logSearch) error {
	for ; s.at.Job < len(s.node.Jobs); s.at = (logPlace{Node: s.at.Node, Job: s.at.Job + 1}) {
		s.job, s.run, s.open = s.node.Jobs[s.at.Job], 0, map[string][]byte{}
		for {
			type chunk struct {
				Job, Run int64
				ID       int64
				Stream   string
				Data     []byte
			}
			chunks, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[chunk], "flow_job_logs", []int64{s.job}, s.at.Run, s.at.Chunk, chunksAtOnce)
			if err != nil {
				return err
			}
			for _, c := range chunks {
				if int(c.Run) != s.run {
					s.close()
					s.run = int(c.Run)
				}
				s.look(c.Stream, c.Data)
				s.at.Run, s.at.Chunk = int(c.Run), c.ID
				if s.full() {
					s.close()
					return nil
				}
			}
			if len(chunks) < chunksAtOnce {
				break
			}
		}
		s.close()
	}
	s.at = logPlace{Node: s.node.No + 1}
	return nil
}

// look searches the lines that end in a chunk.
func (s *logSearch) look(stream string, data []byte) {
	s.page.Looked += int64(len(data))
	data = append(s.open[stream], data...)
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(data)-end > longestOpen {
		end = len(data)
	}
	s.open[stream] = bytes.Clone(data[end:])
	s.lines(data[:end])
}

// close searches what has no end of line.
func (s *logSearch) close() {
	for stream, data := range s.open {
		s.lines(data)
		delete(s.open, stream)
	}
}

func (s *logSearch) lines(data []byte) {
	lower := lowered(data)
	for from := 0; from < len(data); {
		at := bytes.Index(lower[from:], s.needle)
		if at < 0 {
			return
		}
		at += from
		begin := bytes.LastIndexByte(data[:at], '\n') + 1
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n
		}
		from = max(end, at+1)
		if len(s.page.Found) >= searchLines {
			s.page.Left++
			continue
		}
		after := min(end, at+len(s.needle))
		s.page.Found = append(s.page.Found, foundLine{
			No: s.node.No, Path: s.node.Path, Job: s.job, Run: s.run,
			Before: cutLeft(data[begin:at]), Match: string(data[at:after]), After: cutRight(data[after:end]),
		})
	}
}

// lowered makes letters of ASCII small, and keeps all places.
func lowered(data []byte) []byte {
	lower := make([]byte, len(data))
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return lower
}

func cutLeft(text []byte) string {
	if len(text) > longestFound/2 {
		return "\u2026" + strings.ToValidUTF8(string(text[len(text)-longestFound/2:]), "")
	}
	return string(text)
}

func cutRight(text []byte) string {
	if len(text) > longestFound {
		return strings.ToValidUTF8(string(text[:longestFound]), "") + "\u2026"
	}
	return string(text)
}

// Where is the address of the log that a line is in.
func (f foundLine) Where(run runRow) string {
	return fmt.Sprintf("%s/nodes/%d/log?job=%d&run=%d&q=%s", run.Where(), f.No, f.Job, f.Run, url.QueryEscape(f.Match))
}
