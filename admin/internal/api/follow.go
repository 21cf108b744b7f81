package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	// followTime is how long a stream lasts: whoever follows is asked who they are again.
	followTime = 15 * time.Minute
	// followers is how many streams a process has at once.
	followers = 100
	// aliveEvery is how often a stream says something when there is nothing to say, so that nothing between takes it for dead.
	aliveEvery = 15 * time.Second
)

// LastEvent is where a stream is continued.
type LastEvent struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"50" pattern:"^[0-9]+-[0-9]+$" doc:"the id of the last event that was received"`
}

type followInput struct {
	JobPath
	LogPart
	LastEvent
}

type followOutput struct {
	ContentType string `header:"Content-Type"`
	Body        func(huma.Context)
}

// errStream ends a stream in good order.
var errStream = errors.New("the stream ends")

func (s *server) jobsLogFollow(ctx context.Context, in *followInput) (*followOutput, error) {
	return s.stream(ctx, in.ID, &in.LogPart, in.LastEventID)
}

// stream sends what a run of a job prints, until it ends.
func (s *server) stream(ctx context.Context, id int64, in *LogPart, lastEvent string) (*followOutput, error) {
	options, err := in.options()
	if err != nil {
		return nil, err
	}
	run := in.Run
	if lastEvent != "" {
		if _, err := fmt.Sscanf(lastEvent, "%d-%d", &run, &options.After); err != nil {
			return nil, invalid("header.Last-Event-ID", "not the id of an event of this stream")
		}
		options.Head, options.Tail = joblog.Limit{}, joblog.Limit{}
	}
	if run, err = document.LogRun(ctx, s.Pool, s.Jobs, id, run, true); err != nil {
		return nil, err
	}
	select {
	case s.followers <- struct{}{}:
	default:
		p := newProblem("busy", "%d streams are open already: try again later, or another server", followers)
		p.header("Retry-After", "30")
		return nil, p
	}
	return &followOutput{ContentType: "text/event-stream", Body: func(h huma.Context) {
		defer func() { <-s.followers }()
		h.SetStatus(http.StatusOK)
		r, w := humago.Unwrap(h)
		if r.Method == http.MethodHead {
			return
		}
		ctx, cancel := context.WithTimeoutCause(ctx, followTime, errStream)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)() //nolint:contextcheck // the server's end, beside the request's
		s.follow(ctx, &events{w: w, control: http.NewResponseController(w)}, id, run, options)
	}}, nil
}

// follow sends the chunks of a run until it ends.
func (s *server) follow(ctx context.Context, e *events, id int64, run int, options joblog.Options) {
	if e.comment("following run "+fmt.Sprint(run)) != nil {
		return
	}
	ended := func(ctx context.Context) (bool, error) {
		if err := e.alive(); err != nil {
			return false, err
		}
		return document.RunEnded(ctx, s.Jobs, id, run)
	}
	for c, err := range joblog.Follow(ctx, s.Pool, s.Jobs.Schema(), id, run, options, ended) {
		switch {
		case err != nil && ctx.Err() != nil, e.failed:
			return
		case err != nil:
			_ = e.send("problem", "", s.problemOf(ctx, err)) // nobody is left to tell
			return
		}
		if e.send("chunk", fmt.Sprintf("%d-%d", run, c.ID), document.NewChunk(id, run, c)) != nil {
			return
		}
	}
	_ = e.send("end", "", map[string]any{"job_id": id, "run": run}) // nobody is left to tell
}

// events is a stream of server-sent events.
type events struct {
	w       http.ResponseWriter
	control *http.ResponseController
	last    time.Time // when something was sent
	failed  bool      // the client has gone
}

func (e *events) send(name, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return e.write(fmt.Sprintf("event: %s\n%sdata: %s\n\n", name, id, text))
}

func (e *events) comment(text string) error { return e.write(": " + text + "\n\n") }

// alive says something if nothing was said for a while.
func (e *events) alive() error {
	if time.Since(e.last) < aliveEvery {
		return nil
	}
	return e.comment("alive")
}

func (e *events) write(text string) error {
	e.last = time.Now()
	_ = e.control.SetWriteDeadline(e.last.Add(pieceTime)) // without it the server's holds
	_, err := e.w.Write([]byte(text))
	if err == nil {
		err = e.control.Flush()
	}
	e.failed = err != nil
	return err
}
