package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// service is a server with an API, and who may use it.
type service struct {
	t      *testing.T
	pool   *pgxpool.Pool
	jobs   *jobs.Client
	flows  *flow.Client
	access *access.Store
	url    string
	tokens map[access.Role]string
	client *http.Client
	stop   func()
	keys   secret.KeyFile
	log    logText // of the server

	operations func() *http.ServeMux // by method and path; its handlers answer with what an operation documents
}

// logText is a log that is kept.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start starts a server on a database of its own.
func start(t *testing.T) *service {
	t.Helper()
	pool := schematest.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 10 })
	s := &service{t: t, pool: pool, tokens: map[access.Role]string{}}
	logger := slog.New(slog.DiscardHandler)
	var err error
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	s.jobs, err = jobs.NewClient(pool, &jobs.Config{Logger: logger})
	check(err)
	s.flows, err = flow.NewClient(pool, s.jobs, &flow.Config{Logger: logger})
	check(err)
	schedules, err := periodic.NewClient(pool, s.jobs, s.flows, &periodic.Config{Logger: logger})
	check(err)
	s.access, err = access.NewStore(pool, access.Config{})
	check(err)
	for _, role := range []access.Role{access.Viewer, access.Operator, access.Admin} {
		_, err := s.access.AddUser(t.Context(), "test", access.NewUser{
			Name: role.String(), Roles: []access.Grant{{Project: access.Everything, Role: role}},
		})
		check(err)
		s.tokens[role] = s.token(access.NewToken{User: role.String(), Role: role})
	}
	metrics, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: logger, LostEvery: -1})
	check(err)
	s.keys = secret.KeyFile(filepath.Join(t.TempDir(), "secret.key"))
	check(os.WriteFile(string(s.keys), []byte(secret.NewKey()), 0o600))
	server, err := admin.NewServer(admin.Config{
		Pool: pool, Metrics: metrics, Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
		Access: s.access, Jobs: s.jobs, Flows: s.flows, Schedules: schedules, Secrets: secret.NewClient(pool, s.jobs, s.keys),
	})
	check(err)
	check(server.Start(t.Context()))
	transport := &http.Transport{}
	s.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s.stop = func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	t.Cleanup(s.stop)
	s.url = server.URL()
	s.operations = sync.OnceValue(s.documented)
	return s
}

// token makes a token.
func (s *service) token(n access.NewToken) string {
	s.t.Helper()
	n.Name = "test"
	_, secret, err := s.access.AddToken(s.t.Context(), "test", n)
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// response is what a request got.
type response struct {
	status int
	header http.Header
	body   []byte
}

// ask sends a request with a token; headers are pairs. A body that is no string is sent as JSON.
func (s *service) ask(token, method, path string, body any, headers ...string) response {
	s.t.Helper()
	var content io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, content)
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answered, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answered.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(answered.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.checkDocumented(r, answered.StatusCode)
	return response{answered.StatusCode, answered.Header, text}
}

// documented is a mux of the operations, whose handlers say by headers which statuses each documents.
func (s *service) documented() *http.ServeMux {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/openapi.json", http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.tokens[access.Viewer])
	r, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // only read
	var doc openAPI
	if err := json.NewDecoder(r.Body).Decode(&doc); err != nil || len(doc.Paths) == 0 {
		s.t.Fatalf("the document: %d, %d paths, %v", r.StatusCode, len(doc.Paths), err)
	}
	mux := http.NewServeMux()
	doc.each(func(method, path string, op apiOperation) {
		mux.HandleFunc(method+" "+path, func(w http.ResponseWriter, _ *http.Request) {
			for status := range op.Responses {
				w.Header().Add("Status", status)
			}
		})
	})
	return mux
}

// checkDocumented fails the test if the document does not have the status that an operation answered a request with.
func (s *service) checkDocumented(r *http.Request, status int) {
	s.t.Helper()
	handler, pattern := s.operations().Handler(r)
	if pattern == "" {
		return // no operation
	}
	says := httptest.NewRecorder()
	handler.ServeHTTP(says, r)
	if !slices.Contains(says.Header().Values("Status"), strconv.Itoa(status)) {
		s.t.Errorf("%s answered %d, which the document does not have", pattern, status)
	}
}

// do sends a request as somebody with a role, wants a status, and reads the answer.
func do[T any](s *service, role access.Role, status int, method, path string, body any, headers ...string) T {
	s.t.Helper()
	r := s.ask(s.tokens[role], method, path, body, headers...)
	var out T
	if r.status != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, r.status, status, r.body)
	}
	if len(r.body) > 0 {
		if err := json.Unmarshal(r.body, &out); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, r.body)
		}
	}
	return out
}

// problem is an answer by RFC 9457.
type problem struct {
	Type, Title, Detail string
	Status              int
	Errors              []struct{ At, Message string }
}

// problemOf checks that an answer is a problem of a kind, and reads it.
func (s *service) problemOf(r response, status int, kind, says string) problem {
	s.t.Helper()
	var p problem
	if err := json.Unmarshal(r.body, &p); err != nil {
		s.t.Errorf("no problem: %v: %d %s", err, r.status, r.body)
		return p
	}
	if r.status != status || p.Status != status || p.Type != "urn:pelton:"+kind || !strings.Contains(p.Detail, says) || p.Title == "" ||
		r.header.Get("Content-Type") != "application/problem+json" {
		s.t.Errorf("%d %s %s, want %d urn:pelton:%s %q", r.status, r.header.Get("Content-Type"), r.body, status, kind, says)
	}
	return p
}
