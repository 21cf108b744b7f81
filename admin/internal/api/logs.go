package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/joblog"
)

// pieceTime is how long a client may take for one piece of a stream.
const pieceTime = 30 * time.Second

func (s *server) addLogs() {
	add(s, operation{
		id: "jobs-log-sizes", method: http.MethodGet, path: "/jobs/{id}/logs", tag: "jobs", role: access.Viewer,
		summary: "Tell how much each run of a job printed",
		detail:  "The newest run first; limit counts runs, of which each has an item a stream. Logs outlive their jobs: a job that is gone, and one that printed nothing, have none.",
	}, s.jobsLogSizes)
	add(s, operation{
		id: "jobs-log", method: http.MethodGet, path: "/jobs/{id}/log", tag: "jobs", role: access.Viewer, stream: "application/octet-stream",
		summary: "Download what a run of a job printed, byte for byte",
		detail: "Without run it is the last run. Bytes that were not kept are left out: jobs-log-sizes tells how many. A single range of bytes may be " +
			"asked for (Range). A download that is cut off is not whole.",
		errors: []int{http.StatusRequestedRangeNotSatisfiable},
	}, s.jobsLog)
	add(s, operation{
		id: "jobs-log-follow", method: http.MethodGet, path: "/jobs/{id}/log/follow", tag: "jobs", role: access.Viewer, stream: "text/event-stream",
		summary: "Follow what a run of a job prints, as server-sent events",
		detail: "Events: chunk, with a piece of the log as the command line's job logs --json prints it; end, when the run has ended; problem. The stream " +
			"ends without one after 15 minutes, or when the server stops: ask again with Last-Event-ID, as browsers do.",
	}, s.jobsLogFollow)
}

type jobsLogSizesInput struct {
	JobPath
	Paging
}

func (s *server) jobsLogSizes(ctx context.Context, in *jobsLogSizesInput) (*answer[Page[document.LogSize]], error) {
	const list = "logs of a job"
	before, err := positionOf[int64](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	if before == nil {
		before = new(int64(joblog.AnyRun))
	}
	sizes, err := joblog.SizesBefore(ctx, s.Pool, s.Jobs.Schema(), in.ID, *before, in.Limit+1)
	if err != nil {
		return nil, err
	}
	runs := 0
	for i, size := range sizes {
		if i > 0 && size.Run == sizes[i-1].Run {
			continue
		}
		if runs++; runs > in.Limit {
			sizes = sizes[:i]
			break
		}
	}
	return &answer[Page[document.LogSize]]{partOf(list, document.NewLogSizes(sizes), runs > in.Limit, func(l document.LogSize) any { return l.Run })}, nil
}

// LogPart says which part of which run's log is meant.
type LogPart struct {
	Run       int      `query:"run" minimum:"1" maximum:"2147483647" doc:"number of the run"`
	Stream    []string `query:"stream,explode" enum:"stdout,stderr,log,progress" doc:"only these streams (without: stdout, stderr and log)"`
	Head      int64    `query:"head" minimum:"1" doc:"only so many lines from the beginning"`
	Tail      int64    `query:"tail" minimum:"1" doc:"only so many lines from the end"`
	HeadBytes int64    `query:"head_bytes" minimum:"1" doc:"only so many bytes from the beginning"`
	TailBytes int64    `query:"tail_bytes" minimum:"1" doc:"only so many bytes from the end"`
}

func (p *LogPart) options() (joblog.Options, error) {
	streams := p.Stream
	if len(streams) == 0 {
		streams = []string{"stdout", "stderr", "log"}
	}
	o := joblog.Options{
		Streams: document.StreamsOf(streams),
		Head:    joblog.Limit{Bytes: p.HeadBytes, Lines: p.Head}, Tail: joblog.Limit{Bytes: p.TailBytes, Lines: p.Tail},
	}
	if o.Head != (joblog.Limit{}) && o.Tail != (joblog.Limit{}) {
		return o, invalid("query.tail", "the beginning and the end: want one of them")
	}
	return o, nil
}

// LogRange is a part of a download.
type LogRange struct {
	Range string `header:"Range" doc:"a single range of bytes, as bytes=0-999"`
}

type logInput struct {
	JobPath
	LogPart
	LogRange
}

type logOutput struct {
	ContentType        string `header:"Content-Type"`
	ContentDisposition string `header:"Content-Disposition"`
	ContentRange       string `header:"Content-Range"`
	ContentLength      string `header:"Content-Length"`
	AcceptRanges       string `header:"Accept-Ranges"`
	Run                int    `header:"Pelton-Run" doc:"number of the run"`
	Body               func(huma.Context)
}

func (s *server) jobsLog(ctx context.Context, in *logInput) (*logOutput, error) {
	return s.download(ctx, in.ID, &in.LogPart, in.Range)
}

// download sends what a run of a job printed.
func (s *server) download(ctx context.Context, id int64, in *LogPart, ranged string) (*logOutput, error) {
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	run, err := document.LogRun(ctx, s.Pool, s.Jobs, id, in.Run, false)
	if err != nil {
		return nil, err
	}
	out := &logOutput{
		ContentType: "application/octet-stream", AcceptRanges: "bytes", Run: run,
		ContentDisposition: fmt.Sprintf(`attachment; filename="job-%d-run-%d.log"`, id, run),
	}
	status, part := http.StatusOK, span{length: -1}
	if wanted, ok := parseRange(ranged); ok {
		if options.Head != (joblog.Limit{}) || options.Tail != (joblog.Limit{}) {
			return nil, invalid("header.Range", "a range, and head or tail: want one of them")
		}
		total, err := s.logTotal(ctx, id, run, options.Streams)
		if err != nil {
			return nil, err
		}
		if part, ok = wanted.of(total); !ok {
			p := newProblem("range-not-satisfiable", "header.Range: %q lies outside the log, which has %s", ranged, quantity.Of(total, "byte"))
			p.header("Content-Range", fmt.Sprintf("bytes */%d", total))
			return nil, p
		}
		status = http.StatusPartialContent
		out.ContentRange = fmt.Sprintf("bytes %d-%d/%d", part.start, part.start+part.length-1, total)
		out.ContentLength = strconv.FormatInt(part.length, 10)
		ended, err := joblog.Ended(ctx, s.Pool, s.Jobs.Schema(), id, run)
		if err != nil {
			return nil, err
		}
		if ended && part.start > 0 { // nothing more comes, so the way from the end is the shorter one
			options.Tail.Bytes, part.start = total-part.start, 0
		}
	}
	next, stop := iter.Pull2(joblog.Read(ctx, s.Pool, s.Jobs.Schema(), id, run, options))
	first, err, some := next()
	if err != nil {
		stop()
		return nil, err
	}
	out.Body = func(h huma.Context) {
		defer stop()
		h.SetStatus(status)
		r, w := humago.Unwrap(h)
		if r.Method == http.MethodHead {
			return
		}
		control := http.NewResponseController(w)
		for c := first; some && part.length != 0; c, err, some = next() {
			if err != nil {
				s.Logger.WarnContext(ctx, "api: a download is cut off", "job", id, "run", run, "error", err)
				panic(http.ErrAbortHandler) // so that nobody takes it for whole
			}
			_ = control.SetWriteDeadline(time.Now().Add(pieceTime)) // without it the server's holds
			if _, err := w.Write(part.take(c.Data)); err != nil {
				return // the client has gone
			}
		}
		if part.length > 0 {
			panic(http.ErrAbortHandler) // it was trimmed meanwhile
		}
	}
	return out, nil
}

// logTotal is how many bytes of streams of a run are stored.
func (s *server) logTotal(ctx context.Context, id int64, run int, letters string) (total int64, err error) {
	sizes, err := joblog.SizesBefore(ctx, s.Pool, s.Jobs.Schema(), id, int64(run)+1, 1)
	for _, size := range sizes {
		for i := range len(letters) {
			if size.Run == run && size.Stream == letters[i:i+1] {
				total += size.Stored
			}
		}
	}
	return total, err
}
