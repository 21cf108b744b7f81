package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/internal/look"
	"github.com/peltonq/pelton/admin/internal/once"
	"github.com/peltonq/pelton/admin/internal/upload"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
)

// prefix is where all operations are.
const prefix = "/api/v1"

// Config says what the API operates with. All is required.
type Config struct {
	Pool      *pgxpool.Pool
	Access    *access.Store
	Guard     *access.Guard
	Jobs      *jobs.Client
	Flows     *flow.Client
	Schedules *periodic.Client
	Secrets   *secret.Client
	Alerts    *alert.Store
	Logger    *slog.Logger
	Reads     *look.Slots // bound what is read at once
}

// server is the API of one process. Its methods are the handlers.
type server struct {
	Config

	huma      huma.API
	once      *once.Store
	followers followers
	ending    context.Context //nolint:containedctx // its end is that of all streams
	end       context.CancelFunc
	uploads   upload.Gate
	counts    counts
}

// API is the API of a server. Make it with Mount.
type API struct{ server *server }

// End ends all streams, and what is counted in the background: a server that shuts down waits for them.
func (a *API) End() {
	a.server.end()
	a.server.counts.running.Wait()
}

// Mount adds the API and its document to a mux behind which requests have an actor (access.Guard.Authenticate).
func Mount(mux *http.ServeMux, config Config) *API {
	own := http.NewServeMux()
	s := newServer(own, config)
	document := sync.OnceValue(func() []byte { // few ask for it
		text, err := json.Marshal(s.huma.OpenAPI())
		if err != nil {
			panic(err) // it is made of our own types
		}
		return text
	})
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document()) // nobody is left to tell
	})
	for _, method := range methods { // one by one: a pattern without a method is at odds with the page's, which are for GET
		mux.Handle(method+" /api/", routed(own))
	}
	return &API{s}
}

func newServer(mux *http.ServeMux, config Config) *server {
	s := &server{Config: config, once: once.New(config.Pool, config.Jobs.Schema())}
	s.ending, s.end = context.WithCancel(context.Background())
	s.counts = counts{count: config.Jobs.JobCounts, ending: s.ending, log: config.Logger}
	s.huma = humago.New(mux, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Pelton", Version: "1",
				Description: "Jobs, queues, flows and schedules. docs/api.md tells how to log in, how lists, keys and errors work.",
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"token":   {Type: "http", Scheme: "bearer", Description: "pelton token create"},
					"session": {Type: "apiKey", In: "cookie", Name: "pelton_session", Description: "POST /login; under TLS the cookie is __Host-pelton_session"},
				},
			},
			Security: []map[string][]string{{"token": {}}, {"session": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat: "application/json",
	})
	s.addJobs()
	s.addEnqueue()
	s.addFlows()
	s.addRuns()
	s.addRunLogs()
	s.addSchedules()
	s.addBackfills()
	s.addJobChanges()
	s.addLogs()
	s.addQueues()
	s.addDead()
	s.addReports()
	s.addUsers()
	s.addSecrets()
	s.addAlerts()
	return s
}

// schemaName names a type in the document. Those of flows and schedules say so: their packages know them by shorter names.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	of := t.PkgPath() + t.Name() // of a Page, the package of what is in it is part of the name
	for part, prefix := range map[string]string{"pelton/jobs/flow": "Flow", "pelton/periodic": "Schedule", "pelton/admin/alert": "Alert"} {
		if strings.Contains(of, part) && !strings.HasPrefix(name, prefix) {
			return prefix + name
		}
	}
	return name
}

// methods are those that operations may have, and OPTIONS, which none has.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions}

// routed answers what no operation is for with a problem.
func routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		writeProblem(w, unrouted(mux, r))
	})
}

// unrouted is why no operation answers a request.
func unrouted(mux *http.ServeMux, r *http.Request) *problem {
	var allowed []string
	for _, method := range methods {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		return newProblem("no-such-path", "there is nothing at %s: /openapi.json lists what there is", r.URL.Path)
	}
	p := newProblem("method-not-allowed", "%s does not take %s; it takes %s", r.URL.Path, r.Method, joined(allowed))
	p.header("Allow", joined(allowed))
	return p
}
