package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/peltonq/pelton/admin/access"
)

const (
	// bodyBytes bounds the body of a request.
	bodyBytes = 1 << 20
	// bodyTime is how long it may take to arrive.
	bodyTime = 10 * time.Second
	// answerTime is how long a handler has. The server gives the whole answer 30 seconds.
	answerTime = 25 * time.Second
	// readTime is how long the database may take for what an operation reads.
	readTime = 15 * time.Second
	// slotTime is how long a read waits for others to end.
	slotTime = 5 * time.Second
)

// operation is one thing that the API does.
type operation struct {
	id      string // unique, as jobs-list
	method  string
	path    string // below the prefix
	tag     string // the noun
	summary string
	detail  string
	role    access.Role // needed for everything; NoRole: the handler checks, since it knows the project
	status  int         // defaults to 200, or 204 without a body
	errors  []int       // beside those that all have
	body    int64       // bytes at most; defaults to bodyBytes
	time    time.Duration
	stream  string // content type of an answer that is streamed
	upload  string // content type of a body that the handler reads
}

// add registers an operation. What its handler returns as an error becomes a problem.
func add[I, O any](s *server, op operation, handler func(ctx context.Context, in *I) (*O, error)) {
	needs := "The role depends on the project."
	if op.role > access.NoRole {
		needs = "Needs the role " + op.role.String() + " for everything."
	}
	o := huma.Operation{
		OperationID: op.id, Method: op.method, Path: prefix + op.path, Tags: []string{op.tag}, Summary: op.summary,
		Description: strings.TrimSpace(op.detail + " " + needs), DefaultStatus: op.status,
		MaxBodyBytes:    max(op.body, bodyBytes) + 1, // what has so many is refused
		BodyReadTimeout: max(op.time, bodyTime),
		Errors: append([]int{
			http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout,
		}, op.errors...),
		Metadata: map[string]any{schemasKey: s.huma.OpenAPI().Components.Schemas},
	}
	if op.method != http.MethodGet && op.method != http.MethodDelete {
		o.Errors = append(o.Errors, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if strings.Contains(op.path, "{") {
		o.Errors = append(o.Errors, http.StatusNotFound)
	}
	if op.stream != "" {
		o.Responses = map[string]*huma.Response{"200": {
			Description: http.StatusText(http.StatusOK),
			Content:     map[string]*huma.MediaType{op.stream: {Schema: &huma.Schema{Type: huma.TypeString}}},
		}}
		if slices.Contains(op.errors, http.StatusRequestedRangeNotSatisfiable) {
			o.Responses["206"] = &huma.Response{Description: http.StatusText(http.StatusPartialContent), Content: o.Responses["200"].Content}
		}
	}
	if op.upload != "" {
		o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			op.upload: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
	}
	o.Middlewares = huma.Middlewares{s.before(op)}
	huma.Register(s.huma, o, func(ctx context.Context, in *I) (*O, error) {
		if op.method == http.MethodGet && op.stream == "" {
			reading, done, err := s.reading(ctx)
			if err != nil {
				return nil, err
			}
			defer done()
			ctx = reading
		}
		out, err := handler(ctx, in)
		if err != nil {
			return nil, s.problemOf(ctx, err)
		}
		return out, nil
	})
}

// reading waits for a slot of reads, and gives what is read so long. Enqueues and other changes take none.
func (s *server) reading(ctx context.Context) (_ context.Context, done func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, slotTime)
	defer cancel()
	actor, _ := access.FromContext(ctx)
	leave, err := s.Reads.Take(waiting, actor.User)
	if err != nil {
		p := newProblem("busy", "other requests read from the database already, as many as may at once, in all or for one user; try again")
		p.header("Retry-After", "1")
		return nil, nil, p
	}
	ctx, end := context.WithTimeoutCause(ctx, readTime, errTooSlow)
	return ctx, func() { end(); leave() }, nil
}

// before checks what needs no body: the role, and the parameters' names. It also sets the deadline.
func (s *server) before(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, w := humago.Unwrap(ctx)
		if op.role > access.NoRole {
			if err := access.Check(r.Context(), op.role, ""); err != nil {
				writeProblem(w, s.problemOf(r.Context(), err))
				return
			}
		}
		if p := checkParameters(r, ctx.Operation()); p != nil {
			writeProblem(w, p)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if op.stream != "" {
			next(ctx)
			return
		}
		limit := max(op.time, answerTime)
		if limit > answerTime {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + bodyTime)) // without it the server's holds
			if op.upload != "" {
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
			}
		}
		inTime, cancel := context.WithTimeoutCause(r.Context(), limit, errTooSlow)
		defer cancel()
		next(huma.WithContext(ctx, inTime))
	}
}

// answer is the output of a handler that has a body.
type answer[T any] struct{ Body T }

// tagged is an answer with a version, which a change may name (If-Match).
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// answered makes an answer.
func answered[T any](body T, err error) (*answer[T], error) {
	if err != nil {
		return nil, err
	}
	return &answer[T]{body}, nil
}

// JobPath names a job.
type JobPath struct {
	ID int64 `path:"id" minimum:"1" doc:"of the job"`
}
