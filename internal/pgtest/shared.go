package pgtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/postgres"
)

// shared is the process's one server and what is needed to make databases on it.
type shared struct {
	dir       *workdir
	cluster   *postgres.Cluster
	admin     *pgxpool.Pool
	databases atomic.Int64

	mu        sync.Mutex
	templates map[string]*template
}

// template is a database that others are copied from. once guards its making; err is what the making said.
type template struct {
	once     sync.Once
	database string
	err      error
}

var (
	sharedMu sync.Mutex
	current  *shared
	failed   error // the first start's failure, told to every test without trying again
)

// start returns the process's server, starting it if need be.
func start() (*shared, error) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if current != nil || failed != nil {
		return current, failed
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	current, failed = startShared(ctx)
	return current, failed
}

func startShared(ctx context.Context) (*shared, error) {
	binaries, err := find(ctx)
	if err != nil {
		return nil, err
	}
	chosen, err := settings()
	if err != nil {
		return nil, err
	}
	dir, err := newWorkdir()
	if err != nil {
		return nil, fmt.Errorf("directory of the test server: %w", err)
	}
	cluster, err := postgres.Start(ctx, postgres.Config{
		Binaries: binaries, DataDir: filepath.Join(dir.path, "data"), Settings: chosen,
		NoSync: true, Trust: true, DieWithOwner: true,
	})
	if err != nil {
		return nil, errors.Join(err, dir.remove())
	}
	config, err := pgxpool.ParseConfig(cluster.DSN("postgres"))
	if err != nil {
		return nil, errors.Join(err, cluster.Stop(ctx), dir.remove())
	}
	config.MaxConns = 4
	admin, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, errors.Join(err, cluster.Stop(ctx), dir.remove())
	}
	return &shared{dir: dir, cluster: cluster, admin: admin, templates: map[string]*template{}}, nil
}

// stopShared stops the server if there is one. Tests must have ended.
func stopShared(ctx context.Context) error {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if current == nil {
		return nil
	}
	current.admin.Close()
	err := errors.Join(current.cluster.Stop(ctx), current.dir.remove())
	current = nil
	return err
}

// Cluster returns the process's shared server, starting it if need be. It is everybody's: do not stop it; a test that
// wants to takes its own from [NewCluster].
func Cluster(t testing.TB) *postgres.Cluster {
	t.Helper()
	return server(t).cluster
}

func server(t testing.TB) *shared {
	t.Helper()
	running, err := start()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return running
}

// Database returns the DSN (a URL) of a new, empty database. It is dropped when the test ends, whoever is connected.
func Database(t testing.TB) string {
	t.Helper()
	return server(t).database(t, "")
}

// FromTemplate returns the DSN of a new database that starts as a copy of what prepare made. prepare runs once per
// process and name; it must have closed its connections when it returns.
func FromTemplate(t testing.TB, name string, prepare func(ctx context.Context, dsn string) error) string {
	t.Helper()
	running := server(t)
	from := running.template(name)
	from.once.Do(func() { from.err = running.prepare(from, prepare) })
	if from.err != nil {
		t.Fatalf("pgtest: template %q: %v", name, from.err)
	}
	return running.database(t, from.database)
}

func (s *shared) template(name string) *template {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, exists := s.templates[name]
	if !exists {
		found = &template{database: fmt.Sprintf("template_%d", len(s.templates)+1)}
		s.templates[name] = found
	}
	return found
}

// prepare makes a template. It has a context of its own: the test that happens to come first must not spoil it for the
// others when it ends.
func (s *shared) prepare(from *template, prepare func(ctx context.Context, dsn string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := s.exec(ctx, "CREATE DATABASE "+from.database); err != nil {
		return err
	}
	if err := prepare(ctx, s.cluster.DSN(from.database)); err != nil {
		return err
	}
	return s.exec(ctx, "ALTER DATABASE "+from.database+" WITH ALLOW_CONNECTIONS false")
}

func (s *shared) exec(ctx context.Context, sql string) error {
	_, err := s.admin.Exec(ctx, sql)
	return err
}

func (s *shared) database(t testing.TB, from string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	sql := "CREATE DATABASE " + name
	if from != "" {
		sql += " TEMPLATE " + from + " STRATEGY FILE_COPY" // a third of the work of the usual way, which writes every block to the WAL
	}
	if err := s.exec(t.Context(), sql); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.drop(ctx, name); err != nil {
			t.Errorf("pgtest: drop the test's database: %v", err)
		}
	})
	return s.cluster.DSN(name)
}

// drop ends everybody's sessions and removes the database. Prepared transactions would hold it, so they go first.
func (s *shared) drop(ctx context.Context, name string) error {
	err := s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
	if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "55006" { // object_in_use
		return err
	}
	if err := rollbackPrepared(ctx, s.cluster.DSN(name)); err != nil {
		return err
	}
	return s.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
}

func rollbackPrepared(ctx context.Context, dsn string) error {
	session, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close(ctx) }()
	rows, err := session.Query(ctx, "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")
	if err != nil {
		return err
	}
	prepared, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, gid := range prepared {
		_, rollbackErr := session.Exec(ctx, "ROLLBACK PREPARED '"+strings.ReplaceAll(gid, "'", "''")+"'")
		err = errors.Join(err, rollbackErr)
	}
	return err
}
