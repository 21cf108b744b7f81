package joblog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestFollowSeesEverythingAndEnds(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{ChunkBytes: 16})
	run := w.Run(job, 1)
	var over atomic.Bool
	ended := func(context.Context) (bool, error) { return over.Load(), nil }
	var want, got strings.Builder
	seen := make(chan int, 1000)
	done := make(chan error)
	go func() {
		for c, err := range joblog.Follow(t.Context(), pool, schema.DefaultName, job, 1, joblog.Options{}, ended) {
			if err != nil {
				done <- err
				return
			}
			got.Write(c.Data)
			seen <- got.Len()
		}
		close(done)
	}()
	for i := range 20 {
		line := fmt.Sprintf("line %d of those that are printed\n", i)
		want.WriteString(line)
		write(t, run.Stream(joblog.Stdout), []byte(line))
		if i == 5 { // the follower is at work by now
			for n := range seen {
				if n >= want.Len() {
					break
				}
			}
		}
	}
	closeRun(t, run)
	over.Store(true)
	if err := <-done; err != nil || got.String() != want.String() {
		t.Fatalf("got %q, want %q: %v", got.String(), want.String(), err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	ended := func(context.Context) (bool, error) {
		cancel(enough)
		return false, nil
	}
	for _, err := range joblog.Follow(ctx, pool, schema.DefaultName, job, 1, joblog.Options{}, ended) {
		if !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

func TestProgressNewestWins(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{ProgressEvery: time.Hour})
	run := w.Run(job, 1)
	report := func(percent float64) {
		if err := run.Progress(percent, "step"); err != nil {
			t.Fatal(err)
		}
	}
	report(1)
	pgtest.Eventually(t, patience, func() bool { return text(t, pool, joblog.Options{}) != "" }, "first report not stored")
	for i := range 50 {
		report(float64(i + 10))
	}
	closeRun(t, run)
	lines := strings.Split(strings.TrimSpace(text(t, pool, joblog.Options{Streams: "p"})), "\n")
	var last joblog.Progress
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || len(lines) != 2 || last.Percent != 59 {
		t.Fatalf("lines %q: %v", lines, err)
	}
	if err := run.Progress(101, ""); err == nil {
		t.Fatal("101 percent was taken")
	}
}

func TestLoggerWritesJSONLines(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{})
	run := w.Run(job, 1)
	ctx := joblog.NewContext(t.Context(), run)
	joblog.Logger(ctx).Debug("too fine")
	joblog.Logger(ctx).With("a", 1).WithGroup("g").InfoContext(ctx, "hello", "b", "x\x00y")
	slog.New(joblog.NewHandler(run, slog.LevelError)).Warn("below the level")
	closeRun(t, run)
	var line struct {
		Msg string
		A   int
		G   struct{ B string }
	}
	got := text(t, pool, joblog.Options{Streams: "l"})
	if err := json.Unmarshal([]byte(got), &line); err != nil || line.Msg != "hello" || line.A != 1 || line.G.B != "x\x00y" {
		t.Fatalf("got %q: %v", got, err)
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for _, opts := range []joblog.Options{
		{Streams: "ox"},
		{Head: joblog.Limit{Bytes: -1}},
		{Head: joblog.Limit{Bytes: 1}, Tail: joblog.Limit{Lines: 1}},
	} {
		for _, err := range joblog.Read(t.Context(), nil, schema.DefaultName, job, 1, opts) {
			if !errors.Is(err, joblog.ErrBadOptions) {
				t.Errorf("%+v: %v", opts, err)
			}
		}
	}
}
