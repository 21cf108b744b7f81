package admin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// withClients gives a configuration with users what the page and the API operate with.
func withClients(t *testing.T, pool *pgxpool.Pool, config *admin.Config) {
	t.Helper()
	if config.Access == nil {
		return
	}
	var err error
	if config.Jobs, err = jobs.NewClient(pool, &jobs.Config{Schema: config.Schema, Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
	if config.Flows, err = flow.NewClient(pool, config.Jobs, &flow.Config{Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
	if config.Schedules, err = periodic.NewClient(pool, config.Jobs, config.Flows, &periodic.Config{Logger: quiet()}); err != nil {
		t.Fatal(err)
	}
}

func startServer(t *testing.T, pool *pgxpool.Pool, config admin.Config) *admin.Server {
	t.Helper()
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{
		Keep: -1, LostEvery: time.Minute, Timeout: time.Second, Logger: quiet(), Schema: config.Schema,
	})
	if err != nil {
		t.Fatal(err)
	}
	config.Pool, config.Metrics, config.Listen, config.Logger = pool, cmp.Or(config.Metrics, m), "127.0.0.1:0", quiet()
	withClients(t, pool, &config)
	s, err := admin.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for range 2 {
			if err := s.Stop(ctx); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	})
	return s
}

// get asks a server for a page.
func get(t *testing.T, s *admin.Server, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// wantPage asks until a page has a status and says something.
func wantPage(t *testing.T, s *admin.Server, path string, status int, says string) {
	t.Helper()
	pgtest.Retry(t, patience, func(context.Context) error {
		if got, body := get(t, s, path); got != status || !strings.Contains(body, says) {
			return fmt.Errorf("GET %s: %d, want %d; %q, want %q in it", path, got, status, body, says)
		}
		return nil
	})
}

func TestServerShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := startServer(t, pool, admin.Config{})
	wantPage(t, s, "/", http.StatusOK, "/metrics")
	wantPage(t, s, "/healthz", http.StatusOK, "ok")
	wantPage(t, s, "/readyz", http.StatusServiceUnavailable, "the client has not started")
	s.SetReady()
	wantPage(t, s, "/readyz", http.StatusOK, "ok")
	s.SetNotReady("the client is stopping")
	wantPage(t, s, "/readyz", http.StatusServiceUnavailable, "stopping")
	wantPage(t, s, "/metrics", http.StatusOK, "pelton_up 1")
	wantPage(t, s, "/nothing", http.StatusNotFound, "")
}

func TestReadyNeedsTheRightSchema(t *testing.T) {
	t.Parallel()
	s := startServer(t, pgtest.Pool(t, pgtest.Database(t)), admin.Config{})
	s.SetReady()
	wantPage(t, s, "/readyz", http.StatusServiceUnavailable, "run `pelton migrate up`")
	wantPage(t, s, "/metrics", http.StatusOK, "pelton_up 0")
}

// A schema of another name is read under that name.
func TestServerOnAnotherSchema(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	if err := schema.Up(t.Context(), dsn, "turbine"); err != nil {
		t.Fatal(err)
	}
	pool := pgtest.Pool(t, dsn)
	s := startServer(t, pool, admin.Config{Schema: "turbine"})
	s.SetReady()
	wantPage(t, s, "/readyz", http.StatusOK, "ok")
	if _, err := pool.Exec(t.Context(), `SELECT turbine.enqueue('task')`); err != nil {
		t.Fatal(err)
	}
	wantPage(t, s, "/metrics", http.StatusOK, `pelton_jobs_ready{queue="default"} 1`)
	wantPage(t, s, "/metrics", http.StatusOK, "pelton_jobs_lost 0")
}

// Without the database the process says so, and what it counted itself stands. When it is back, so is the rest.
func TestServerWithoutItsDatabase(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]struct{ begin, end func(*pgtest.Proxy) }{
		"refused": {(*pgtest.Proxy).Down, (*pgtest.Proxy).Up},
		"silent":  {(*pgtest.Proxy).Pause, (*pgtest.Proxy).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := pgtest.NewProxy(t, schematest.DSN(t))
			s := startServer(t, pgtest.Pool(t, proxy.DSN()), admin.Config{})
			s.SetReady()
			wantPage(t, s, "/readyz", http.StatusOK, "ok")
			wantPage(t, s, "/metrics", http.StatusOK, "pelton_jobs_parked 0")
			outage.begin(proxy)
			wantPage(t, s, "/readyz", http.StatusServiceUnavailable, "the version of schema")
			wantPage(t, s, "/metrics", http.StatusOK, "pelton_up 0")
			status, body := get(t, s, "/metrics")
			if status != http.StatusOK || strings.Contains(body, "pelton_jobs_parked ") || !strings.Contains(body, "pelton_claim_duration_seconds_count") {
				t.Errorf("metrics: %d, %q", status, body)
			}
			wantPage(t, s, "/healthz", http.StatusOK, "ok")
			outage.end(proxy)
			wantPage(t, s, "/readyz", http.StatusOK, "ok")
			wantPage(t, s, "/metrics", http.StatusOK, "pelton_up 1")
		})
	}
}

func TestServerRefusesOthers(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for address, refused := range map[string]bool{
		":0": true, "0.0.0.0:0": true, "[::]:0": true, "192.0.2.1:0": true, "[::ffff:192.0.2.1]:0": true,
		"127.0.0.1:0": false, "localhost:0": false, "127.1.2.3:0": false,
	} {
		m, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := admin.NewServer(admin.Config{Pool: pool, Metrics: m, Listen: address, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); errors.Is(err, admin.ErrInsecureListen) != refused || !refused && err != nil {
			t.Errorf("listen on %q: %v", address, err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Errorf("stop on %q: %v", address, err)
		}
	}
	m, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := admin.NewServer(admin.Config{Pool: pool, Metrics: m, Listen: ":0", InsecureListen: true, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Errorf("as asked: %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A duty that stands still makes a process useless; one that fails does not, and is in the metrics.
func TestReadyWhileDutiesFail(t *testing.T) {
	t.Parallel()
	began := time.Now()
	pool := schematest.Pool(t)
	metrics, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1, Timeout: patience, Keep: -1})
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, pool, admin.Config{Metrics: metrics})
	s.SetReady()
	metrics.DutyStepped("keeper", 10*time.Minute, errors.New("read-only"))
	if _, err := pool.Exec(t.Context(), `UPDATE pelton.duty SET due_at = now() - interval '4 min' WHERE duty = 'reaper'`); err != nil {
		t.Fatal(err)
	}
	wantPage(t, s, "/readyz", http.StatusOK, "ok")
	wantPage(t, s, "/metrics", http.StatusOK, `pelton_duty_failing{duty="keeper"} 1`)
	if late, ok := gather(t, metrics).value("pelton_duty_late_seconds", "reaper"); !ok || late < 59 || late > 61+time.Since(began).Seconds() {
		t.Errorf("the reaper is %v s late", late)
	}
	if late, ok := gather(t, metrics).value("pelton_duty_late_seconds", "mover"); !ok || late != 0 {
		t.Errorf("the mover is %v s late", late)
	}
	if why := metrics.Stuck(time.Now().Add(14 * time.Minute)); why != "" {
		t.Errorf("while it may rest: %s", why)
	}
	if why := metrics.Stuck(time.Now().Add(16 * time.Minute)); !strings.Contains(why, `duty "keeper" of this process stands still`) {
		t.Errorf("after that: %q", why)
	}
	metrics.DutyStepped("keeper", -6*time.Minute, nil)
	wantPage(t, s, "/readyz", http.StatusServiceUnavailable, "stands still")
	metrics.DutyStepped("keeper", time.Minute, nil)
	wantPage(t, s, "/readyz", http.StatusOK, "ok")
	wantPage(t, s, "/metrics", http.StatusOK, `pelton_duty_failing{duty="keeper"} 0`)
}

// versionReads counts how often the version of the schema is asked for.
type versionReads struct{ count atomic.Int64 }

func (v *versionReads) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "SELECT version, dirty FROM") {
		v.count.Add(1)
	}
	return ctx
}

func (v *versionReads) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// However many ask whether it is ready, the database is asked by one of them, and the others get its answer, also when the one is gone.
func TestReadyAsksOnceForMany(t *testing.T) {
	t.Parallel()
	reads := &versionReads{}
	pool := pgtest.Pool(t, schematest.DSN(t), func(c *pgxpool.Config) { c.MaxConns, c.ConnConfig.Tracer = 1, reads })
	s := startServer(t, pool, admin.Config{})
	s.SetReady()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if why := s.AskDatabase(gone, time.Hour); why != "" {
		t.Errorf("who is gone got %q", why)
	}
	if n := reads.count.Load(); n != 1 {
		t.Fatalf("the first one asked %d times", n)
	}
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if status, body := get(t, s, "/readyz"); status != http.StatusOK {
				t.Errorf("GET /readyz: %d %s", status, body)
			}
		})
	}
	asking.Wait()
	if n := reads.count.Load(); n != 1 {
		t.Errorf("twenty more asked %d times", n-1)
	}
	s.AskDatabase(t.Context(), -time.Hour)
	wantPage(t, s, "/readyz", http.StatusOK, "ok")
	if n := reads.count.Load(); n < 2 {
		t.Error("an old answer still serves")
	}
}

// The pool of the page and the API is shown beside the queue's.
func TestMetricsOfBothPools(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	size := func(n int32) *pgxpool.Pool { return pgtest.Pool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = n }) }
	s := startServer(t, size(3), admin.Config{Pages: size(5)})
	for _, says := range []string{
		`pelton_pool_connections_max{pool="queue"} 3`, `pelton_pool_connections_max{pool="pages"} 5`, `pelton_pool_connections{pool="pages",state="acquired"} 0`,
		`pelton_pool_wait_seconds_total{pool="pages"} 0`,
	} {
		wantPage(t, s, "/metrics", http.StatusOK, says)
	}
	one := startServer(t, size(3), admin.Config{})
	if _, body := get(t, one, "/metrics"); strings.Contains(body, `pool="pages"`) {
		t.Error("a server whose page has no pool of its own shows one")
	}
}
