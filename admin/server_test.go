package admin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
		Keep: time.Nanosecond, LostEvery: time.Minute, Timeout: time.Second, Logger: quiet(), Schema: config.Schema,
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
	pool := schematest.Pool(t)
	metrics, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet(), LostEvery: -1, Keep: time.Nanosecond})
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
	if late, ok := gather(t, metrics).value("pelton_duty_late_seconds", "reaper"); !ok || late < 59 || late > 120 {
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
