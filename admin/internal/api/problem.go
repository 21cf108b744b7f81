package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/once"
	"github.com/peltonq/pelton/internal/suggest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema"
)

// kinds of problems, by the last part of their type, which never changes. docs/api.md explains them.
var kinds = map[string]struct {
	status int
	title  string
}{
	"bad-body":               {http.StatusBadRequest, "The body cannot be read"},
	"not-logged-in":          {http.StatusUnauthorized, "Not logged in"},
	"forbidden":              {http.StatusForbidden, "Forbidden"},
	"not-found":              {http.StatusNotFound, "Not found"},
	"no-such-path":           {http.StatusNotFound, "No such path"},
	"method-not-allowed":     {http.StatusMethodNotAllowed, "Method not allowed"},
	"slow-body":              {http.StatusRequestTimeout, "The body came too slowly"},
	"job-running":            {http.StatusConflict, "The job runs"},
	"unique-conflict":        {http.StatusConflict, "Another job holds the unique key"},
	"flow-node":              {http.StatusConflict, "The job is of a flow's node"},
	"job-not-scheduled":      {http.StatusConflict, "The job does not wait for a time"},
	"job-not-ended":          {http.StatusConflict, "The job, or its flow's run, has not ended"},
	"job-erased":             {http.StatusConflict, "The job was erased"},
	"run-in-the-way":         {http.StatusConflict, "Another run of the flow has not ended"},
	"run-ended":              {http.StatusConflict, "The run has ended"},
	"run-live":               {http.StatusConflict, "The run has not ended"},
	"refused":                {http.StatusConflict, "Refused as things stand"},
	"owned":                  {http.StatusConflict, "The schedule belongs to a service's code"},
	"exists":                 {http.StatusConflict, "It exists already"},
	"last-admin":             {http.StatusConflict, "The last admin"},
	"key-in-use":             {http.StatusConflict, "The first request with this key is under way"},
	"changed-meanwhile":      {http.StatusPreconditionFailed, "Somebody else has changed it"},
	"body-too-large":         {http.StatusRequestEntityTooLarge, "The body is too large"},
	"unsupported-media-type": {http.StatusUnsupportedMediaType, "Unsupported media type"},
	"range-not-satisfiable":  {http.StatusRequestedRangeNotSatisfiable, "Range not satisfiable"},
	"invalid-request":        {http.StatusUnprocessableEntity, "Invalid request"},
	"invalid-job":            {http.StatusUnprocessableEntity, "Invalid job"},
	"invalid-flow":           {http.StatusUnprocessableEntity, "The project has faults"},
	"invalid-schedule":       {http.StatusUnprocessableEntity, "Invalid schedule"},
	"bad-cursor":             {http.StatusUnprocessableEntity, "Not a cursor of this list"},
	"key-reused":             {http.StatusUnprocessableEntity, "The key belongs to another request"},
	"internal":               {http.StatusInternalServerError, "Internal error"},
	"unavailable":            {http.StatusServiceUnavailable, "Unavailable"},
	"busy":                   {http.StatusServiceUnavailable, "Busy"},
	"no-secret-key":          {http.StatusServiceUnavailable, "The server has no key for secrets"},
	"missing-rights":         {http.StatusServiceUnavailable, "The server's database role lacks rights"},
	"wrong-schema":           {http.StatusServiceUnavailable, "The schema is of another version"},
	"too-slow":               {http.StatusGatewayTimeout, "It took too long"},
}

// conditions are the errors of other packages that clients are told, and the problems they are. The first that fits counts.
var conditions = []struct {
	is   func(error) bool
	kind string
}{
	{sentinel(access.ErrNotLoggedIn), "not-logged-in"},
	{sentinel(access.ErrForbidden), "forbidden"},
	{sentinel(rivertype.ErrNotFound), "not-found"},
	{sentinel(flow.ErrNotFound), "not-found"},
	{sentinel(periodic.ErrNotFound), "not-found"},
	{sentinel(access.ErrNotFound), "not-found"},
	{sentinel(access.ErrExists), "exists"},
	{sentinel(access.ErrLastAdmin), "last-admin"},
	{typed[*access.InputError], "invalid-request"},
	{sentinel(rivertype.ErrJobRunning), "job-running"},
	{typed[*jobs.UniqueConflictError], "unique-conflict"},
	{typed[*jobs.FlowNodeError], "flow-node"},
	{typed[*jobs.NotScheduledError], "job-not-scheduled"},
	{wasErased, "job-erased"},
	{typed[*jobs.EraseError], "job-not-ended"},
	{typed[*jobs.InvalidJobError], "invalid-job"},
	{typed[*jobs.InvalidUpdateError], "invalid-job"},
	{typed[*jobs.QueueNameError], "invalid-request"},
	{sentinel(flow.ErrRunning), "run-in-the-way"},
	{sentinel(flow.ErrEnded), "run-ended"},
	{sentinel(flow.ErrLive), "run-live"},
	{sentinel(flow.ErrRefused), "refused"},
	{typed[*flow.InvalidOptionsError], "invalid-request"},
	{typed[*flow.InputError], "invalid-flow"},
	{sentinel(flow.ErrTooLarge), "invalid-request"},
	{sentinel(periodic.ErrOwned), "owned"},
	{sentinel(periodic.ErrRefused), "refused"},
	{typed[*periodic.InvalidScheduleError], "invalid-schedule"},
	{typed[*periodic.InvalidBackfillError], "invalid-request"},
	{sentinel(secret.ErrNotFound), "not-found"},
	{typed[*secret.InputError], "invalid-request"},
	{sentinel(alert.ErrNotFound), "not-found"},
	{typed[*alert.InputError], "invalid-request"},
	{typed[*schema.VersionError], "wrong-schema"},
	{sentinel(schema.ErrNotOwner), "missing-rights"},
}

func sentinel(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func typed[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// wasErased tells whether a job cannot run again because it was erased.
func wasErased(err error) bool {
	e, is := errors.AsType[*jobs.EraseError](err)
	return is && e.Erased
}

// errTooSlow is the cause of the end of a handler's context.
var errTooSlow = errors.New("it took too long, and was given up; what it was about to change is as it was")

// problem is an error as RFC 9457 has it.
type problem struct {
	Type   string  `json:"type" format:"uri" doc:"what kind of problem it is; it never changes"`
	Title  string  `json:"title" doc:"the kind in words"`
	Status int     `json:"status" doc:"that of the answer"`
	Detail string  `json:"detail" doc:"what was wrong, where, and what to do"`
	Errors []fault `json:"errors,omitempty" doc:"each of several faults"`

	headers http.Header
}

// fault is one of several things that are wrong with a request.
type fault struct {
	At      string `json:"at" doc:"where, as body.jobs[3].priority or query.limit"`
	Message string `json:"message"`
}

// newProblem makes a problem of a kind.
func newProblem(kind, format string, args ...any) *problem {
	k := kinds[kind]
	return &problem{Type: "urn:pelton:" + kind, Title: k.title, Status: k.status, Detail: fmt.Sprintf(format, args...)}
}

// invalid is a problem with one part of a request.
func invalid(at, format string, args ...any) *problem {
	message := fmt.Sprintf(format, args...)
	p := newProblem("invalid-request", "%s: %s", at, message)
	p.Errors = []fault{{at, message}}
	return p
}

// Error implements error.
func (p *problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders implements huma.HeadersError.
func (p *problem) GetHeaders() http.Header { return p.headers }

// ContentType implements huma.ContentTypeFilter.
func (p *problem) ContentType(string) string { return "application/problem+json" }

func (p *problem) header(name, value string) {
	if p.headers == nil {
		p.headers = http.Header{}
	}
	p.headers.Set(name, value)
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, p *problem) {
	maps.Copy(w.Header(), p.headers)
	w.Header().Set("Content-Type", p.ContentType(""))
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(p) // nobody is left to tell
}

// problemOf makes a problem of a handler's error. What nobody is told is logged.
func (s *server) problemOf(ctx context.Context, err error) *problem {
	if p, is := errors.AsType[*problem](err); is {
		return p
	}
	for _, c := range conditions {
		if c.is(err) {
			return newProblem(c.kind, "%v", err)
		}
	}
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return newProblem("too-slow", "%v", errTooSlow)
	}
	if schema.Denied(err) {
		s.Logger.ErrorContext(ctx, "api: the server's database role lacks a right: see `pelton grants --as admin`, to be given after each upgrade again",
			"role", s.Pool.Config().ConnConfig.User, "error", err)
	}
	if p := databaseProblem(err); p != nil {
		return p
	}
	if ctx.Err() != nil {
		return newProblem("unavailable", "the request was given up") // by its client: nobody reads it
	}
	s.Logger.ErrorContext(ctx, "api: a request failed", "error", err)
	if _, lost := errors.AsType[*pgconn.ConnectError](err); lost || pgconn.Timeout(err) {
		return newProblem("unavailable", "the database did not answer; the server's log says more")
	}
	return newProblem("internal", "something went wrong inside; the server's log says more")
}

// databaseProblem is what the database says of a request; nil: nothing that is the client's business.
func databaseProblem(err error) *problem {
	said, is := errors.AsType[*pgconn.PgError](err)
	switch {
	case !is:
		return nil
	case once.Locked(err):
		p := newProblem("busy", "somebody else holds it; try again")
		p.header("Retry-After", "1")
		return p
	case schema.Denied(err):
		return newProblem("missing-rights", "the server's database role may not do this: %s; see pelton grants", said.Message)
	case strings.HasPrefix(said.Code, "22"): // data exceptions: what was given cannot be stored, or looked for
		return newProblem("invalid-request", "the database cannot take a value of this request: %s", said.Message)
	}
	return nil
}

const schemasKey = "schemas"

func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return rejected(nil, status, message, errs)
	}
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		return rejected(ctx, status, message, errs)
	}
}

// rejections are the problems that huma finds, by status.
var rejections = map[int]string{
	http.StatusBadRequest: "bad-body", http.StatusRequestTimeout: "slow-body", http.StatusRequestEntityTooLarge: "body-too-large",
	http.StatusUnsupportedMediaType: "unsupported-media-type", http.StatusUnprocessableEntity: "invalid-request",
}

// mostFaults is how many faults are told.
const mostFaults = 20

// rejected is a problem that huma finds before a handler is asked.
func rejected(ctx huma.Context, status int, message string, errs []error) *problem {
	kind, known := rejections[status]
	if !known {
		kind = "internal"
	}
	p := newProblem(kind, "%s", message)
	var details []string
	for _, err := range errs {
		if len(p.Errors) == mostFaults {
			break
		}
		f := fault{Message: err.Error()}
		if d, is := errors.AsType[*huma.ErrorDetail](err); is {
			f = fault{d.Location, d.Message}
			if ctx != nil && d.Message == "unexpected property" {
				f.Message = "unknown field" + nearField(ctx.Operation(), d.Location)
			}
		}
		p.Errors = append(p.Errors, f)
		details = append(details, strings.TrimPrefix(f.At+": "+f.Message, ": "))
	}
	if len(details) > 0 {
		p.Detail = strings.Join(details, "; ")
	}
	if kind == "unsupported-media-type" {
		p.Detail = "want Content-Type: application/json"
	}
	return p
}

// nearField says which field may have been meant at a place of an operation's body.
func nearField(op *huma.Operation, at string) string {
	schemas, _ := op.Metadata[schemasKey].(huma.Registry)
	if op.RequestBody == nil || schemas == nil {
		return ""
	}
	at, found := strings.CutPrefix(at, "body.")
	if !found {
		return ""
	}
	s := op.RequestBody.Content["application/json"].Schema
	steps := strings.Split(at, ".")
	for i, step := range steps {
		if s.Ref != "" {
			s = schemas.SchemaFromRef(s.Ref)
		}
		if i == len(steps)-1 {
			break
		}
		name, _, inList := strings.Cut(step, "[")
		next := s.Properties[name]
		if next != nil && inList {
			next = next.Items
		}
		if next == nil {
			return ""
		}
		s = next
	}
	var names []string
	for name := range s.Properties {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return suggest.Near(steps[len(steps)-1], sorted(names))
}
