package pagetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

// Patience is how long a test waits for something that must happen.
const Patience = 2 * time.Minute

// Password is that of the users who have one.
const Password = "correct horse"

// Site is a server with users: viewer, operator and admin of everything; nobody, who has no role; and etl, who is operator of the project etl. Of
// these, admin and viewer can log in by Password.
type Site struct {
	Server    *admin.Server
	URL       string
	Pool      *pgxpool.Pool
	Access    *access.Store
	Jobs      *jobs.Client
	Flows     *flow.Client
	Schedules *periodic.Client
	Secrets   *secret.Client // nil with Options.NoKey

	t      testing.TB
	tokens map[string]string
}

// Options say what a site has. The zero value works no jobs.
type Options struct {
	// Jobs is the configuration of the site's client. With queues it is started, and so are flows and schedules.
	Jobs jobs.Config

	// NoKey: the server has no key for secrets.
	NoKey bool

	// Passwords: admin and viewer get one. Hashing takes a moment.
	Passwords bool
}

// Start starts a site on a database of its own. It is stopped when the test ends.
func Start(t testing.TB, options Options) *Site {
	t.Helper()
	s := &Site{t: t, Pool: schematest.Pool(t), tokens: map[string]string{}}
	quiet := slog.New(slog.DiscardHandler)
	var err error
	must := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if options.Jobs.Logger == nil {
		options.Jobs.Logger = quiet
	}
	s.Access, err = access.NewStore(s.Pool, access.Config{})
	must()
	s.Jobs, err = jobs.NewClient(s.Pool, &options.Jobs)
	must()
	s.Flows, err = flow.NewClient(s.Pool, s.Jobs, &flow.Config{Logger: quiet})
	must()
	s.Schedules, err = periodic.NewClient(s.Pool, s.Jobs, s.Flows, &periodic.Config{Logger: quiet})
	must()
	s.addUsers(options.Passwords)
	metrics, err := admin.NewMetrics(s.Pool, admin.MetricsConfig{Keep: -1, LostEvery: -1, Timeout: Patience, Logger: quiet})
	must()
	config := admin.Config{
		Pool: s.Pool, Metrics: metrics, Access: s.Access, Jobs: s.Jobs, Flows: s.Flows, Schedules: s.Schedules, Listen: "127.0.0.1:0", Logger: quiet,
	}
	if !options.NoKey {
		keys := secret.KeyFile(filepath.Join(t.TempDir(), "secret.key"))
		err = os.WriteFile(string(keys), []byte(secret.NewKey()), 0o600)
		must()
		s.Secrets = secret.NewClient(s.Pool, s.Jobs, keys)
		config.Secrets = s.Secrets
	}
	s.Server, err = admin.NewServer(config)
	must()
	if len(options.Jobs.Queues) > 0 {
		s.work()
	}
	err = s.Server.Start(t.Context())
	must()
	s.Server.SetReady()
	s.URL = s.Server.URL()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if err := s.Server.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}

// work starts the clients, which are stopped when the test ends.
func (s *Site) work() {
	s.t.Helper()
	if err := s.Jobs.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.Flows.Start(s.t.Context())
	schedules := s.Schedules.Start(s.t.Context())
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		s.Schedules.Stop()
		s.Flows.Stop()
		if err := s.Jobs.StopAndCancel(ctx); err != nil {
			s.t.Errorf("stop: %v", err)
		}
	})
	if schedules != nil {
		s.t.Fatal(schedules)
	}
}

func (s *Site) addUsers(passwords bool) {
	s.t.Helper()
	everything := func(role access.Role) []access.Grant {
		return []access.Grant{{Project: access.Everything, Role: role}}
	}
	for name, roles := range map[string][]access.Grant{
		"viewer": everything(access.Viewer), "operator": everything(access.Operator), "admin": everything(access.Admin),
		"nobody": nil, "etl": {{Project: "etl", Role: access.Operator}},
	} {
		u := access.NewUser{Name: name, Roles: roles}
		if passwords && (name == "admin" || name == "operator" || name == "viewer") {
			u.Password = Password
		}
		s.add(u)
	}
}

// Add adds a user with roles, who can be visited as.
func (s *Site) Add(name string, roles ...access.Grant) {
	s.t.Helper()
	s.add(access.NewUser{Name: name, Roles: roles})
}

func (s *Site) add(u access.NewUser) {
	s.t.Helper()
	if _, err := s.Access.AddUser(s.t.Context(), "test", u); err != nil {
		s.t.Fatal(err)
	}
	_, secret, err := s.Access.AddToken(s.t.Context(), "test", access.NewToken{User: u.Name, Name: "test", Role: access.Admin})
	if err != nil {
		s.t.Fatal(err)
	}
	s.tokens[u.Name] = secret
}

// Exec runs SQL.
func (s *Site) Exec(sql string, args ...any) {
	s.t.Helper()
	if _, err := s.Pool.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatal(err)
	}
}
