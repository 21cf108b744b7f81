package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/schema"
)

// handler answers a request, or returns why not.
type handler func(w http.ResponseWriter, r *http.Request) error

// need says what a route asks of the actor before its handler runs.
type need func(ctx context.Context) error

// Needs of routes.
var (
	viewer   need = func(ctx context.Context) error { return access.Check(ctx, access.Viewer, "") }
	operator need = func(ctx context.Context) error { return access.Check(ctx, access.Operator, "") }
	admin    need = func(ctx context.Context) error { return access.Check(ctx, access.Admin, "") }

	// anybody is for what is everybody's who is logged in.
	anybody need = func(context.Context) error { return nil }

	// checksItself is for things of a project: the handler finds out which, and calls access.Check. Here, some role is needed.
	checksItself need = func(ctx context.Context) error {
		if !actor(ctx).Anything() {
			return fmt.Errorf("%w: %s has no role anywhere", access.ErrForbidden, actor(ctx).Name)
		}
		return nil
	}
)

// formBytes bounds the body of a form.
const formBytes = 2 << 20

// listBytes is what the rows of a list that may be large take together, about: such a page ends early.
const listBytes = 4 << 20

// get adds a route that shows something.
func (p *Page) get(path string, need need, h handler) { p.route("GET "+path, need, h) }

// post adds a route that changes something: a form, which ends with done.
func (p *Page) post(path string, need need, h handler) { p.route("POST "+path, need, h) }

func (p *Page) route(pattern string, need need, h handler) {
	p.handle(pattern, need, func(w http.ResponseWriter, r *http.Request) error {
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, formBytes)
			if err := parseForm(r); err != nil {
				return err
			}
		}
		return h(w, r)
	})
}

// handle is route for handlers that read the body themselves.
func (p *Page) handle(pattern string, need need, h handler) {
	p.routes = append(p.routes, pattern)
	p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		err := need(r.Context())
		if err == nil {
			err = checkAddress(r)
		}
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			p.fail(w, r, err)
		}
	})
}

func parseForm(r *http.Request) error {
	err := r.ParseForm() // first: of a form that is not multipart, ParseMultipartForm keeps its faults to itself
	if err == nil {
		err = r.ParseMultipartForm(formBytes)
	}
	if errors.Is(err, http.ErrNotMultipart) {
		err = nil // parsed all the same
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &inputError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the form has more than %d bytes", tooLarge.Limit)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if err != nil {
		return badInput("the form cannot be read: %v", err)
	}
	for _, values := range r.PostForm {
		if err := storable(values...); err != nil {
			return err
		}
	}
	return nil
}

// checkAddress refuses addresses whose path or query no database can hold.
func checkAddress(r *http.Request) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badInput("the address cannot be read: %v", err)
	}
	for _, values := range query {
		if err := storable(values...); err != nil {
			return err
		}
	}
	return storable(r.URL.Path)
}

// inputError is a fault of what was asked for. Its text is shown.
type inputError struct {
	status int
	text   string
}

func (e *inputError) Error() string { return e.text }

// badInput is a fault in a form or an address: 400 with this text.
func badInput(format string, args ...any) error {
	return &inputError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// notFound says what is not there: 404 with this text.
func notFound(format string, args ...any) error {
	return &inputError{http.StatusNotFound, fmt.Sprintf(format, args...)}
}

var errNoPage = notFound("there is no such page")

// refused is what an action answered that cannot be done as things are: 409 with its text.
func refused(err error) error { return &inputError{http.StatusConflict, err.Error()} }

// fail shows why a request got no answer.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) { // the form's, which ends the request's context too
		p.showFault(w, r, http.StatusRequestTimeout, http.StatusText(http.StatusRequestTimeout), "The form came too slowly. Nothing was done.")
		return
	}
	if r.Context().Err() != nil {
		return // nobody is left to tell
	}
	input, isInput := errors.AsType[*inputError](err)
	switch {
	case errors.Is(err, access.ErrForbidden):
		p.showFault(w, r, http.StatusForbidden, http.StatusText(http.StatusForbidden), forbidden(err))
	case errors.Is(err, access.ErrNotLoggedIn):
		p.config.Guard.Deny(w, r, err)
	case isInput:
		p.showFault(w, r, input.status, http.StatusText(input.status), input.text)
	case errors.Is(err, rivertype.ErrNotFound), errors.Is(err, access.ErrNotFound):
		p.showFault(w, r, http.StatusNotFound, "Not found", err.Error())
	case unstorable(err):
		p.showFault(w, r, http.StatusBadRequest, http.StatusText(http.StatusBadRequest), "The database cannot hold a value of this address or form.")
	case tookTooLong(err):
		p.showFault(w, r, http.StatusServiceUnavailable, "That took too long",
			"The database was given "+readTime.String()+" for it. Ask for less: a shorter time, or fewer filters that no index helps; or try again later.")
	case schema.Denied(err):
		p.config.Logger.ErrorContext(r.Context(), "a page failed, since the server's database role lacks a right: see `pelton grants --as admin`, to be given after each upgrade again",
			"path", r.URL.Path, "role", p.config.Pool.Config().ConnConfig.User, "error", err)
		p.showFault(w, r, http.StatusServiceUnavailable, "Missing rights",
			"The server's database role may not do this; its log says which right it lacks. Whoever runs the database gives it with pelton grants.")
	default:
		p.config.Logger.ErrorContext(r.Context(), "a page failed", "path", r.URL.Path, "error", err)
		p.showFault(w, r, http.StatusInternalServerError, "Something went wrong", "The server's log says more.")
	}
}

// forbidden says why somebody may not do something, and, of a missing role, who can give it.
func forbidden(err error) string {
	missing, is := errors.AsType[*access.RoleError](err)
	if !is {
		return strings.TrimPrefix(err.Error(), access.ErrForbidden.Error()+": ")
	}
	project := ""
	if missing.Project != "" {
		project = " --project " + missing.Project
	}
	return fmt.Sprintf("%s. An admin of everything can give it, on the page Admin or by: pelton user role %s %s%s", missing.Missing(), missing.Name, missing.Role, project)
}

// unstorable tells whether the database was given a value that it cannot hold: a data exception, by PostgreSQL's classes of errors.
func unstorable(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && strings.HasPrefix(refusal.Code, "22")
}

// tookTooLong tells whether a statement, or the wait for a connection, was cut off.
func tookTooLong(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (refusal.Code == "57014" || refusal.Code == "55P03") || errors.Is(err, context.DeadlineExceeded)
}

type fault struct {
	Detail string
	Above  string // the page of the thing whose part or action this was; empty: none
}

// above is the page of the flows' project, run, job or schedule that a path is below; empty: it is below none.
func above(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) == 4 && slices.Contains([]string{"flows", "runs", "jobs", "schedules"}, parts[1]) {
		return "/" + parts[1] + "/" + parts[2]
	}
	return ""
}

func (p *Page) showFault(w http.ResponseWriter, r *http.Request, status int, title, detail string) {
	if err := p.renderStatus(w, r, status, "fault", title, fault{detail, above(r.URL.EscapedPath())}); err != nil {
		http.Error(w, title, status)
	}
}

// readTime is how long the database may take for what a page shows.
const readTime = 3 * time.Second

// snapshot begins the transaction of read: its statements have a time limit, and run one at a time, without helpers.
var snapshot = pgx.TxOptions{BeginQuery: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = " + strconv.FormatInt(readTime.Milliseconds(), 10) +
	"; SET LOCAL lock_timeout = 500; SET LOCAL idle_in_transaction_session_timeout = 10000; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off"}

// read runs fn in a read-only transaction whose statements have a time limit. Only so many are read at a time, in all and for one user.
func (p *Page) read(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	leave, err := p.slots.Take(ctx, actor(ctx).User)
	if err != nil {
		return err
	}
	defer leave()
	return pgx.BeginTxFunc(ctx, p.config.Pool, snapshot, func(tx pgx.Tx) error { return fn(ctx, tx) })
}

// limit is a context for calls of clients that have no transaction to be given: it ends a little later than statements of read would.
func (p *Page) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, readTime+time.Second)
}

// pathID reads a number from the path.
func pathID(r *http.Request, name string) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || id < 0 {
		return 0, notFound("%s is not a number that something could have", r.PathValue(name))
	}
	return id, nil
}

// with is the request's own address with query values changed; an empty value removes one. Pairs of name and value.
func with(r *http.Request, pairs ...string) string {
	query := r.URL.Query()
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			query.Del(pairs[i])
		} else {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return (&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()
}

// itself is the request as whoever looks at the page at path makes it: r, or, if that sent a form of the page which is shown again, one like it.
func itself(r *http.Request, path string, query url.Values) *http.Request {
	if r.Method != http.MethodPost {
		return r
	}
	again := r.Clone(r.Context())
	again.Method, again.URL = http.MethodGet, &url.URL{Path: path, RawQuery: query.Encode()}
	return again
}

// pager is the way through a long list: the template "pager" shows it.
type pager struct{ First, Next string }

// page makes a pager: after is the cursor of the next page, empty at the end; it travels in the query value "after".
func page(r *http.Request, after string) pager {
	var p pager
	if r.URL.Query().Get("after") != "" {
		p.First = with(r, "after", "")
	}
	if after != "" {
		p.Next = with(r, "after", after)
	}
	return p
}
