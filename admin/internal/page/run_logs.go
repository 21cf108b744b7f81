package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	jobsAtOnce   = 50
	chunksAtOnce = 32
)

// runPlace is where a search in a run's logs goes on: a node, a job of it (which one), and a run of that.
type runPlace struct {
	Node, Job, Run int

	logPlace
}

func (l runPlace) String() string {
	return fmt.Sprintf("%d.%d.%d.%d.%d", l.Node, l.Job, l.Run, l.After, l.Seen)
}

func placeOf(text string) (l runPlace, err error) {
	if text == "" {
		return l, nil
	}
	if n, err := fmt.Sscanf(text, "%d.%d.%d.%d.%d", &l.Node, &l.Job, &l.Run, &l.After, &l.Seen); err != nil || n != 5 || l.Node < 0 || l.Job < 0 {
		return l, badInput("%q is no place in the logs", text)
	}
	return l, nil
}

// foundLine is a line of a node's log that was found.
type foundLine struct {
	logLine

	No   int
	Path string
	Job  int64
	Run  int
}

type logsPage struct {
	Run   runRow
	Finds logFinds
	Found []foundLine
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
	query := r.URL.Query()
	data := &logsPage{Run: run}
	if data.Finds, err = newLogFinds(query); err != nil {
		return err
	}
	if data.Finds.Query != "" {
		search := &runSearch{page: data, at: place}
		err := p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
			search.until = time.Now().Add(searchTime(query))
			if search.below, err = joblog.Ceiling(ctx, tx, p.config.Schema); err != nil {
				return err
			}
			return p.searchRun(ctx, tx, search)
		})
		if err != nil {
			return err
		}
		if place != (runPlace{}) {
			data.Finds.Pager.First = with(r, "after", "", "looked", "", "further", "")
		}
		if !search.over {
			address := func(pairs ...string) string { return with(r, append([]string{"further", ""}, pairs...)...) }
			data.Finds.goOn(address, "after", search.at.String())
		}
	}
	return p.render(w, r, "run_logs", fmt.Sprintf("Logs of run %d", run.ID), data)
}

// runSearch is a search in a run's logs under way.
type runSearch struct {
	page  *logsPage
	until time.Time
	at    runPlace // from here on
	below int64    // the ids of chunks
	over  bool     // all was searched
}

type nodeJobs struct {
	No   int
	Path string
	Jobs []int64
	Of   int // nodes of the run
}

// enough tells whether a page is full, or the time is up.
func (s *runSearch) enough() bool {
	return s.page.Finds.Shown >= logMatches || time.Now().After(s.until)
}

// searchRun looks through the logs of a run's nodes, in the order of the graph, job by job.
func (p *Page) searchRun(ctx context.Context, tx pgx.Tx, s *runSearch) error {
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
				s.at = runPlace{Node: node.No}
			}
			s.page.Finds.Reached = fmt.Sprintf("node %s of %s, %s", count(node.No+1), count(node.Of), node.Path)
			if ended, err := p.searchNode(ctx, tx, s, node); err != nil || !ended {
				return err
			}
			s.at = runPlace{Node: node.No + 1}
			if s.enough() {
				return nil
			}
		}
	}
}

// searchNode looks through the logs of a node's jobs; ended: to their end.
func (p *Page) searchNode(ctx context.Context, tx pgx.Tx, s *runSearch, node nodeJobs) (ended bool, err error) {
	for s.at.Job < len(node.Jobs) {
		if ended, err = p.searchJob(ctx, tx, s, node); err != nil || !ended {
			return false, err
		}
		s.at = runPlace{Node: node.No, Job: s.at.Job + 1}
		if s.at.Job < len(node.Jobs) && s.enough() {
			return false, nil
		}
	}
	return true, nil
}

// searchJob looks through the logs of one job's runs.
func (p *Page) searchJob(ctx context.Context, tx pgx.Tx, s *runSearch, node nodeJobs) (ended bool, err error) {
	job, run := node.Jobs[s.at.Job], s.at.Run
	search := func(seen int64) *lineSearch {
		return newLineSearch(&s.page.Finds, charsets[0], seen, func(line logLine) {
			s.page.Found = append(s.page.Found, foundLine{line, node.No, node.Path, job, run})
		})
	}
	lines, place := search(s.at.Seen), s.at.logPlace
	for {
		type chunk struct {
			Run    int32
			ID     int64
			At     time.Time
			Stream string
			Pos    int64
			Data   []byte
		}
		chunks, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[chunk], "flow_job_logs", job, run, place.After, chunksAtOnce, s.below)
		if err != nil {
			return false, err
		}
		for _, c := range chunks {
			other := int(c.Run) != run
			if other {
				lines.end()
			}
			if lines.enough(s.until) {
				s.at.Run, s.at.logPlace = run, lines.place()
				return false, nil
			}
			if other {
				run, lines = int(c.Run), search(0)
			}
			lines.add(joblog.Chunk{ID: c.ID, At: c.At, Stream: c.Stream[0], Pos: c.Pos, Data: c.Data})
			place.After = c.ID
		}
		if len(chunks) < chunksAtOnce {
			lines.end()
			return true, nil
		}
	}
}

// Where is the address of the log that a line is in.
func (f foundLine) Where(run runRow) string {
	return fmt.Sprintf("%s/nodes/%d/log?job=%d&run=%d&q=%s", run.Where(), f.No, f.Job, f.Run, url.QueryEscape(f.Match))
}
