package joblog_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const job = int64(3_000_000) << 24

// patience is how long a test waits for something that must happen.
const patience = time.Minute

// start returns a running writer; it is stopped when the test ends.
func start(t *testing.T, pool *pgxpool.Pool, config joblog.Config) *joblog.Writer {
	t.Helper()
	if config.FlushInterval == 0 {
		config.FlushInterval = 5 * time.Millisecond
	}
	// A busy machine is no outage.
	config.Patience, config.FlushTimeout = cmp.Or(config.Patience, patience), cmp.Or(config.FlushTimeout, patience)
	w := joblog.NewWriter(pool, schema.DefaultName, config)
	w.Start(t.Context())
	t.Cleanup(w.Stop)
	return w
}

func closeRun(t *testing.T, run *joblog.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := run.Close(ctx); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func write(t *testing.T, w io.Writer, data []byte) {
	t.Helper()
	if n, err := w.Write(data); err != nil || n != len(data) {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(data), err)
	}
}

// read collects chunks of run 1.
func read(t *testing.T, db joblog.DB, opts joblog.Options) []joblog.Chunk {
	t.Helper()
	var chunks []joblog.Chunk
	for c, err := range joblog.Read(t.Context(), db, schema.DefaultName, job, 1, opts) {
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, c)
	}
	return chunks
}

func text(t *testing.T, db joblog.DB, opts joblog.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := joblog.Copy(&b, joblog.Read(t.Context(), db, schema.DefaultName, job, 1, opts)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// samples are texts to push through, by name: awkward ones, and the files of PELTON_AZKABAN_DIR if there is one.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	binary := make([]byte, 300_000)
	if _, err := random.Read(binary); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{
		"binary": binary,
		"nul":    bytes.Repeat([]byte{0}, 70_000),
		"split":  []byte("grüße, 日本語 🚰\n"),
		"broken": []byte("a\xff\xfe\xc3(\x00\xed\xa0\x80z"),
	}
	dir := os.Getenv("PELTON_AZKABAN_DIR")
	if dir == "" {
		t.Log("PELTON_AZKABAN_DIR is not set: without its log files")
		return all
	}
	names, err := filepath.Glob(filepath.Join(dir, "24-log-chunks", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in 24-log-chunks under %q: %v", dir, err)
	}
	for _, name := range names {
		if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestBytesComeBackExactly(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	all := samples(t)
	for _, chunkBytes := range []int{1, 7, 1000, 64 << 10} {
		w := start(t, pool, joblog.Config{ChunkBytes: chunkBytes})
		id := int64(0)
		for name, data := range all {
			if chunkBytes < 100 && len(data) > 2000 {
				data = data[:2000]
			}
			id++
			run := w.Run(job+id, chunkBytes)
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 1+rand.IntN(3*chunkBytes))
				write(t, run.Stream(joblog.Stdout), rest[:n])
				rest = rest[n:]
			}
			closeRun(t, run)
			var got bytes.Buffer
			err := joblog.Copy(&got, joblog.Read(t.Context(), pool, schema.DefaultName, job+id, chunkBytes, joblog.Options{}))
			if err != nil || !bytes.Equal(got.Bytes(), data) {
				t.Errorf("%s in chunks of %d: got %d bytes, want %d: %v", name, chunkBytes, got.Len(), len(data), err)
			}
		}
	}
}

func TestManyRunsShareAFlush(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{FlushInterval: time.Hour})
	var last *joblog.Run
	const runs, lines = 100, 50
	for i := range runs {
		last = w.Run(job+int64(i), 1)
		for range lines {
			write(t, last.Stream(joblog.Stdout), []byte("a line\n"))
		}
	}
	closeRun(t, last)
	var rows, jobs int
	err := pool.QueryRow(t.Context(), `SELECT count(*), count(DISTINCT job_id) FROM pelton.job_log`).Scan(&rows, &jobs)
	if s := w.Stats(); err != nil || rows != runs || jobs != runs || s.Flushes != 1 || s.Unsent != 0 || s.Stored != runs*lines*7 {
		t.Fatalf("%d rows of %d jobs, %+v, %v; want %d rows in 1 flush", rows, jobs, s, err, runs)
	}
}

func TestStoredWithoutClose(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{})
	write(t, w.Run(job, 1).Stream(joblog.Stdout), []byte("hello"))
	pgtest.Eventually(t, patience, func() bool { return text(t, pool, joblog.Options{}) == "hello" }, "not stored")
}

func TestStreamsInterleave(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{FlushInterval: time.Hour})
	run := w.Run(job, 1)
	write(t, run.Stream(joblog.Stdout), []byte("one\n"))
	write(t, run.Stream(joblog.Stderr), []byte("two\n"))
	write(t, run.Stream(joblog.Stdout), []byte("three\n"))
	for range 1000 {
		write(t, run.Stream(joblog.Stdout), []byte("o"))
		write(t, run.Stream(joblog.Stderr), []byte("e"))
	}
	closeRun(t, run)
	chunks := read(t, pool, joblog.Options{})
	if string(chunks[0].Data) != "one\n" || chunks[1].Stream != joblog.Stderr || len(chunks) > 20 {
		t.Fatalf("%d chunks, the first %q", len(chunks), chunks[0].Data)
	}
	if got := text(t, pool, joblog.Options{Streams: "e"}); got != "two\n"+string(bytes.Repeat([]byte("e"), 1000)) {
		t.Fatalf("stderr: %q", got)
	}
}

func TestStopStoresWhatIsLeft(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{FlushInterval: time.Hour, FlushBytes: 1, ChunkBytes: 10})
	run := w.Run(job, 1)
	write(t, run.Stream(joblog.Stdout), bytes.Repeat([]byte("0123456789"), 3))
	w.Stop()
	if got := text(t, pool, joblog.Options{}); len(got) != 30 {
		t.Fatalf("got %q", got)
	}
	if _, err := run.Stream(joblog.Stdout).Write([]byte("late")); !errors.Is(err, joblog.ErrClosed) {
		t.Fatalf("write after stop: %v", err)
	}
}

func TestRunWithoutOutputCostsNothing(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{})
	run := w.Run(job, 1)
	closeRun(t, run)
	if _, err := run.Stream(joblog.Stdout).Write([]byte("late")); !errors.Is(err, joblog.ErrClosed) {
		t.Fatalf("write after close: %v", err)
	}
	if s := w.Stats(); s.Flushes != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestSilentRunAllocatesOnlyItself(t *testing.T) { //nolint:paralleltest // counts allocations
	w := joblog.NewWriter(nil, schema.DefaultName, joblog.Config{})
	if n := testing.AllocsPerRun(100, func() { _ = w.Run(job, 1).Close(t.Context()) }); n > 1 {
		t.Fatalf("%v allocations for a silent run", n)
	}
}

func TestNilRunDiscards(t *testing.T) {
	t.Parallel()
	run := joblog.FromContext(t.Context())
	write(t, run.Stream(joblog.Stdout), []byte("x"))
	joblog.Logger(t.Context()).Info("x")
	if err := run.Progress(50, ""); err != nil {
		t.Fatal(err)
	}
	closeRun(t, run)
}
