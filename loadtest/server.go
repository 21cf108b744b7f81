package loadtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/postgres"
)

// poolSize is the number of connections that an engine may use.
const poolSize = 20

// settings of the server, the same for all engines: durable, and large enough that checkpoints do not decide the result.
var settings = map[string]string{
	"max_connections":          "100",
	"shared_buffers":           "1GB",
	"max_wal_size":             "16GB",
	"min_wal_size":             "4GB",
	"checkpoint_timeout":       "30min",
	"fsync":                    "on",
	"synchronous_commit":       "on",
	"autovacuum":               "on",
	"shared_preload_libraries": "", // what a machine's own configuration may load would cost time
}

// server is a private PostgreSQL for one scenario, and a session on it that belongs to no engine.
type server struct {
	cluster   *postgres.Cluster
	dir       string
	admin     *pgx.Conn
	databases int
	templates map[string]string // by engine
}

// serverOptions say what differs between scenarios.
type serverOptions struct {
	binDir string            // where the server's programs are; empty: searched
	more   map[string]string // settings
	noSync bool              // for tests that look at no figures
}

// startServer starts a server in a new directory that stop removes.
func startServer(ctx context.Context, options serverOptions) (*server, error) {
	binaries, err := postgres.Find(ctx, postgres.FindOptions{BinDir: options.binDir})
	if err != nil {
		return nil, fmt.Errorf("find postgres: %w", err)
	}
	parent, err := postgres.Place(os.TempDir(), "")
	if err != nil {
		return nil, fmt.Errorf("place for the server: %w", err)
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("place for the server: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "pelton-loadtest-")
	if err != nil {
		return nil, fmt.Errorf("directory of the server: %w", err)
	}
	s := &server{dir: dir, templates: map[string]string{}}
	if err := s.launch(ctx, binaries, options); err != nil {
		return nil, errors.Join(err, s.stop(ctx))
	}
	return s, nil
}

func (s *server) launch(ctx context.Context, binaries postgres.Binaries, options serverOptions) error {
	if err := os.Chmod(s.dir, 0o755); err != nil { // the server may run as another user
		return fmt.Errorf("directory of the server: %w", err)
	}
	chosen := maps.Clone(settings)
	maps.Copy(chosen, options.more)
	if options.noSync {
		chosen["fsync"] = "off"
	}
	cluster, err := postgres.Start(ctx, postgres.Config{
		Binaries: binaries, DataDir: filepath.Join(s.dir, "data"), Settings: chosen, NoSync: options.noSync, Trust: true, DieWithOwner: true,
	})
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	s.cluster = cluster
	if s.admin, err = pgx.Connect(ctx, cluster.DSN("postgres")); err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	return nil
}

// stop ends the server and removes what it wrote, also after ctx has ended.
func (s *server) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var err error
	if s.admin != nil {
		err = s.admin.Close(ctx)
	}
	if s.cluster != nil {
		err = errors.Join(err, s.cluster.Discard(ctx))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// database makes a database with an engine's tables in it. The first call for an engine migrates; the others copy.
func (s *server) database(ctx context.Context, e engine) (string, error) {
	from, ok := s.templates[e.name()]
	if !ok {
		from = "template_" + e.name()
		if err := s.exec(ctx, "CREATE DATABASE "+from); err != nil {
			return "", err
		}
		if err := e.prepare(ctx, s.cluster.DSN(from)); err != nil {
			return "", err
		}
		s.templates[e.name()] = from
	}
	s.databases++
	name := fmt.Sprintf("%s_%d", e.name(), s.databases)
	return name, s.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+from)
}

// drop removes a database, also after ctx has ended.
func (s *server) drop(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return s.exec(ctx, "DROP DATABASE "+database+" WITH (FORCE)")
}

func (s *server) exec(ctx context.Context, sql string) error {
	if _, err := s.admin.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// pool opens all of an engine's connections, so that no round pays for opening them.
func (s *server) pool(ctx context.Context, database string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(s.cluster.DSN(database))
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	if err := fill(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func fill(ctx context.Context, pool *pgxpool.Pool) error {
	held := make([]*pgxpool.Conn, 0, poolSize)
	defer func() {
		for _, c := range held {
			c.Release()
		}
	}()
	for range poolSize {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		held = append(held, c)
	}
	return nil
}

// wal is the position in the log, in bytes.
func (s *server) wal(ctx context.Context) (int64, error) {
	var at int64
	err := s.admin.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&at)
	if err != nil {
		return 0, fmt.Errorf("position in the log: %w", err)
	}
	return at, nil
}
