package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/service"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/joblog"
)

const (
	// followTime is how long a stream lasts: whoever follows is asked who they are again.
	followTime = 15 * time.Minute
	// mostFollowers is how many streams a process has at once.
	mostFollowers = 100
	// followersEach is how many of them one user has.
	followersEach = 25
	// recheckEvery is how often it is asked again whether who follows may.
	recheckEvery = 3 * time.Second
	// aliveEvery is how often a stream says something when there is nothing to say, so that nothing between takes it for dead.
	aliveEvery = 15 * time.Second
)

// followers counts the streams of a process.
type followers struct {
	mu  sync.Mutex
	all int
	by  map[string]int // of each user
}

// enter takes a place for a stream, which leave gives back.
func (f *followers) enter(who string) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	full := ""
	switch {
	case f.by[who] >= followersEach:
		full = fmt.Sprintf("%d streams of yours are open already: end some of them", followersEach)
	case f.all >= mostFollowers:
		full = fmt.Sprintf("%d streams are open already: try again later, or another server", mostFollowers)
	}
	if full != "" {
		p := newProblem("busy", "%s", full)
		p.header("Retry-After", "30")
		return nil, p
	}
	if f.by == nil {
		f.by = map[string]int{}
	}
	f.all, f.by[who] = f.all+1, f.by[who]+1
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.all--
		if f.by[who]--; f.by[who] == 0 {
			delete(f.by, who)
		}
	}, nil
}

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
	return s.stream(ctx, in.ID, &in.LogPart, in.LastEventID, func(ctx context.Context) error { return access.Check(ctx, access.Viewer, "") })
}

// stream sends what a run of a job prints, until it ends, or may tells that who follows may not any more.
func (s *server) stream(ctx context.Context, id int64, in *LogPart, lastEvent string, may func(context.Context) error) (*followOutput, error) {
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
	actor, _ := access.FromContext(ctx)
	leave, err := s.followers.enter(actor.Name)
	if err != nil {
		return nil, err
	}
	return &followOutput{ContentType: "text/event-stream", Body: func(h huma.Context) {
		defer leave()
		h.SetStatus(http.StatusOK)
		r, w := humago.Unwrap(h)
		if r.Method == http.MethodHead {
			return
		}
		ctx, cancel := context.WithTimeoutCause(ctx, followTime, errStream)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)() //nolint:contextcheck // the server's end, beside the request's
		ctx, refuse := context.WithCancelCause(ctx)
		var watching sync.WaitGroup
		watching.Go(func() { s.watch(ctx, r, may, refuse) })
		defer watching.Wait()
		defer refuse(nil)
		s.follow(ctx, &events{w: w, control: http.NewResponseController(w)}, id, run, options)
	}}, nil
}

// watch looks every few seconds whether the actor, as they are then, may still follow.
func (s *server) watch(ctx context.Context, r *http.Request, may func(context.Context) error, refuse context.CancelCauseFunc) {
	for service.Sleep(ctx, recheckEvery) {
		actor, err := s.Guard.Identify(r)
		if err == nil {
			err = may(access.WithActor(ctx, actor))
		}
		if isRefusal(err) {
			refuse(err)
			return
		}
	}
}

// isRefusal tells whether an error says that somebody may not do something, or not even see it. A database that does not answer says nothing.
func isRefusal(err error) bool {
	p, is := errors.AsType[*problem](err)
	return errors.Is(err, access.ErrNotLoggedIn) || errors.Is(err, access.ErrForbidden) || errors.Is(err, flow.ErrNotFound) || is && p.Status == http.StatusNotFound
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
		return joblog.Ended(ctx, s.Pool, s.Jobs.Schema(), id, run)
	}
	for c, err := range joblog.Follow(ctx, s.Pool, s.Jobs.Schema(), id, run, options, ended) {
		switch cause := context.Cause(ctx); {
		case e.failed:
			return
		case isRefusal(cause):
			_ = e.send("problem", "", s.problemOf(ctx, cause)) // nobody is left to tell
			return
		case err != nil && ctx.Err() != nil:
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
