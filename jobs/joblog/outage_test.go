package joblog_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// quiet is a logger for tests in which the database is meant to fail.
var quiet = slog.New(slog.DiscardHandler)

func TestWritesWaitForASlowDatabase(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	w := start(t, pgtest.Pool(t, proxy.DSN()), joblog.Config{
		RunBytes: 256 << 10, FlushTimeout: time.Minute, Patience: time.Hour, Logger: quiet,
	})
	run := w.Run(job, 1)
	write(t, run.Stream(joblog.Stdout), []byte("x"))
	pool := pgtest.Pool(t, dsn)
	pgtest.Eventually(t, patience, func() bool { return text(t, pool, joblog.Options{}) == "x" }, "not stored")

	proxy.Pause()
	data := pattern(3 << 20)
	done := make(chan error)
	go func() {
		_, err := run.Stream(joblog.Stdout).Write(data)
		done <- err
	}()
	pgtest.Eventually(t, patience, func() bool { return w.Stats().Unsent == 256<<10 }, "the run's spool did not fill")
	other := w.Run(job+1, 1)
	write(t, other.Stream(joblog.Stdout), []byte("not delayed"))
	proxy.Resume()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	closeRun(t, run)
	if got := text(t, pool, joblog.Options{}); got != "x"+string(data) || w.Stats().Dropped != 0 {
		t.Fatalf("got %d bytes, %+v", len(got), w.Stats())
	}
}

func TestOutageKeepsBothEnds(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	var dropped atomic.Int64
	w := start(t, pgtest.Pool(t, proxy.DSN()), joblog.Config{
		ChunkBytes: 1000, RunBytes: 20_000, MemoryBytes: 30_000, Patience: time.Millisecond, Logger: quiet,
		Counted: func(_, _, n int64) { dropped.Add(n) },
	})
	proxy.Down()
	run, small := w.Run(job, 1), w.Run(job+1, 1)
	write(t, small.Stream(joblog.Stdout), []byte("small\n"))
	data := pattern(500_000)
	for rest := data; len(rest) > 0; rest = rest[1000:] { // none of these waits for ever
		write(t, run.Stream(joblog.Stdout), rest[:1000])
	}
	if s := w.Stats(); s.Unsent > 30_000 || s.Dropped == 0 {
		t.Fatalf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := run.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("close during the outage: %v", err)
	}
	pgtest.Eventually(t, patience, func() bool { return dropped.Load() == w.Stats().Dropped }, "nobody is told what was dropped while it lasts")
	proxy.Up()
	closeRun(t, run)
	closeRun(t, small)

	pool := pgtest.Pool(t, dsn)
	chunks := read(t, pool, joblog.Options{})
	skipped, latest, last := int64(0), 0, chunks[len(chunks)-1]
	for _, c := range chunks {
		skipped += c.Skipped
		if c.Skipped > 0 {
			latest = 0
		}
		latest += len(c.Data)
		if !bytes.Equal(c.Data, data[c.Pos:c.Pos+int64(len(c.Data))]) {
			t.Fatalf("chunk at %d holds other bytes", c.Pos)
		}
	}
	if latest < 4000 {
		t.Errorf("only %d bytes of the latest output were kept", latest)
	}
	if chunks[0].Pos != 0 || last.Pos+int64(len(last.Data)) != int64(len(data)) || skipped != w.Stats().Dropped {
		t.Fatalf("from %d to %d, %d skipped, %+v", chunks[0].Pos, last.Pos, skipped, w.Stats())
	}
}

func TestLostAnswerStoresNothingTwice(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	w := start(t, pgtest.Pool(t, proxy.DSN()), joblog.Config{Logger: quiet})
	cut := proxy.CutAfterSend(func(message []byte) bool { // not the setting synchronous_commit
		return message[0] == 'Q' && bytes.HasPrefix(bytes.ToLower(message[5:]), []byte("commit"))
	})
	run := w.Run(job, 1)
	write(t, run.Stream(joblog.Stdout), []byte("once\n"))
	<-cut
	write(t, run.Stream(joblog.Stdout), []byte("again\n"))
	closeRun(t, run)
	if got := text(t, pgtest.Pool(t, dsn), joblog.Options{}); got != "once\nagain\n" || w.Stats().Dropped != 0 {
		t.Fatalf("got %q, %+v", got, w.Stats())
	}
}

// TestRefusedChunk has one run whose chunks find no partition, among others.
func TestRefusedChunk(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	if _, err := pool.Exec(t.Context(), `ALTER TABLE pelton.job_log ADD CONSTRAINT no_seven CHECK (run <> 7)`); err != nil {
		t.Fatal(err)
	}
	w := start(t, pool, joblog.Config{FlushInterval: time.Hour, Logger: quiet})
	for run := 1; run <= 20; run++ {
		write(t, w.Run(job, run).Stream(joblog.Stdout), []byte("text"))
	}
	last := w.Run(job, 21)
	write(t, last.Stream(joblog.Stdout), []byte("text"))
	closeRun(t, last)
	sizes, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, job)
	if err != nil || len(sizes) != 20 || w.Stats().Dropped != 4 {
		t.Fatalf("%d runs stored, %+v: %v", len(sizes), w.Stats(), err)
	}
}

func TestStrictIsolationByDefault(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	pool := pgtest.Pool(t, dsn)
	if _, err := pool.Exec(t.Context(), `DO $$ BEGIN EXECUTE format(
		'ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	pool.Reset()
	w := start(t, pool, joblog.Config{ChunkBytes: 100, HeadBytes: 100, TailBytes: 100, FlushBytes: 200})
	run := w.Run(job, 1)
	write(t, run.Stream(joblog.Stdout), pattern(5000))
	closeRun(t, run)
	if n := len(read(t, pool, joblog.Options{})); n < 2 || n > 4 {
		t.Fatalf("%d chunks", n)
	}
}

// TestMemoryStaysFlat prints 100 MB without a newline.
func TestMemoryStaysFlat(t *testing.T) { //nolint:paralleltest // measures the heap
	if testing.Short() {
		t.Skip("prints 100 MB")
	}
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{FlushInterval: 500 * time.Millisecond})
	run := w.Run(job, 1)
	block := []byte(strings.Repeat("x", 32<<10))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	for i := range (100 << 20) / len(block) {
		write(t, run.Stream(joblog.Stdout), block)
		if i%400 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	closeRun(t, run)
	if grown := int64(peak) - int64(before.HeapAlloc); grown > 20<<20 {
		t.Fatalf("the heap grew by %d MiB", grown>>20)
	}
	sizes, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, job)
	if err != nil || sizes[0].Printed != 100<<20 || sizes[0].Stored < 20<<20 || sizes[0].Stored > 21<<20 {
		t.Fatalf("sizes %+v: %v", sizes, err)
	}
}
