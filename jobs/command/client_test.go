//go:build linux

package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

const patience = time.Minute

// startClient starts a client that works command jobs.
func startClient(t *testing.T, pool *pgxpool.Pool) *jobs.Client {
	t.Helper()
	workers := jobs.NewWorkers()
	command.Register(workers, command.Config{})
	client, err := jobs.NewClient(pool, &jobs.Config{
		Queues:       map[string]jobs.QueueConfig{"default": {MaxWorkers: 4}},
		Workers:      workers,
		Heartbeat:    50 * time.Millisecond,
		Lease:        30 * time.Second,
		PollInterval: 100 * time.Millisecond,
		JobTimeout:   100 * time.Millisecond, // command jobs have none unless they say so
		Logger:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.StopAndCancel(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return client
}

// attempt is what a job's first run left behind.
type attempt struct {
	outcome string
	err     *string
	output  []byte
	log     string
}

func firstAttempt(t *testing.T, pool *pgxpool.Pool, id int64) attempt {
	t.Helper()
	var a attempt
	pgtest.Retry(t, patience, func(ctx context.Context) error {
		return pool.QueryRow(ctx, `SELECT outcome::text, error, output FROM pelton.job_attempt WHERE job_id = $1 AND run = 1`, id).
			Scan(&a.outcome, &a.err, &a.output)
	})
	var b strings.Builder
	if err := joblog.Copy(&b, joblog.Read(t.Context(), pool, schema.DefaultName, id, 1, joblog.Options{})); err != nil {
		t.Fatal(err)
	}
	a.log = b.String()
	return a
}

func enqueue(t *testing.T, client *jobs.Client, args command.Args) int64 {
	t.Helper()
	inserted, err := client.Insert(t.Context(), args, &river.InsertOpts{MaxAttempts: 5})
	if err != nil {
		t.Fatal(err)
	}
	return inserted.Job.ID
}

func (a attempt) result(t *testing.T) command.Result {
	t.Helper()
	var r command.Result
	if err := json.Unmarshal(a.output, &r); err != nil {
		t.Fatalf("output %q: %v", a.output, err)
	}
	return r
}

func TestCommandThroughAClient(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := startClient(t, pool)

	good := enqueue(t, client, shell(`sleep 0.3; echo $PELTON_JOB_ID $PELTON_RUN $PELTON_ATTEMPT`))
	a := firstAttempt(t, pool, good)
	if r := a.result(t); a.outcome != "completed" || a.log != fmt.Sprintf("%d 1 1\n", good) || r.ExitCode != 0 || r.Seconds < 0.3 {
		t.Errorf("%+v", a)
	}
	bad := enqueue(t, client, command.Args{Commands: []command.Command{command.Line("true"), command.Line("ls /no/such/file")}})
	a = firstAttempt(t, pool, bad)
	if r := a.result(t); a.outcome != "errored" || r.ExitCode != 2 || r.Command != 2 || !strings.Contains(*a.err, "/no/such/file") {
		t.Errorf("%+v: %s", a, *a.err)
	}
	unknown := enqueue(t, client, command.Args{Command: command.Line("no-such-program")})
	if a = firstAttempt(t, pool, unknown); a.outcome != "errored" || !strings.Contains(*a.err, "program not found") || a.output != nil {
		t.Errorf("%+v", a)
	}
	if _, err := client.Insert(t.Context(), command.Args{}, nil); err == nil || !strings.Contains(err.Error(), "command is missing") {
		t.Errorf("empty args: %v", err)
	}
}

func TestTimeoutAndCancelThroughAClient(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := startClient(t, pool)
	slow := shell(`sleep 1000`)
	slow.Timeout = command.Duration(2 * time.Second) // so that it has begun
	a := firstAttempt(t, pool, enqueue(t, client, slow))
	if r := a.result(t); a.outcome != "errored" || r.Signal != "SIGTERM" || r.ExitCode != 143 || !strings.Contains(*a.err, "timed out") {
		t.Errorf("%+v", a)
	}
	dir := t.TempDir()
	long := shell(`echo $$ > pids; : > ready; exec sleep 1000`)
	long.Dir = dir
	id := enqueue(t, client, long)
	<-stopWhen(t, filepath.Join(dir, "ready")).Done()
	if _, err := client.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if a = firstAttempt(t, pool, id); a.outcome != "cancelled" || a.result(t).Signal != "SIGTERM" {
		t.Errorf("%+v", a)
	}
	if list := pids(t, filepath.Join(dir, "pids")); !gone(list[0]) {
		t.Error("the program still runs")
	}
}
