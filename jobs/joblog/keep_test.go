package joblog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// pattern is n bytes in which every place differs from its surroundings.
func pattern(n int) []byte {
	b := make([]byte, 0, n+8)
	for i := 0; len(b) < n; i++ {
		b = fmt.Appendf(b, "%07d\n", i)
	}
	return b[:n]
}

func TestHeadAndTailAreKept(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	const chunk, head, tail, total = 1000, 10_500, 20_000, 300_000
	var stored, trimmed, dropped int64
	w := start(t, pool, joblog.Config{
		ChunkBytes: chunk, HeadBytes: head, TailBytes: tail, FlushBytes: 4 * chunk,
		Counted: func(s, t, d int64) { stored, trimmed, dropped = stored+s, trimmed+t, dropped+d },
	})
	run := w.Run(job, 1)
	data := pattern(total)
	write(t, run.Stream(joblog.Stdout), data)
	closeRun(t, run)

	chunks := read(t, pool, joblog.Options{})
	var got []byte
	skipped := int64(0)
	for _, c := range chunks {
		if !bytes.Equal(c.Data, data[c.Pos:c.Pos+int64(len(c.Data))]) {
			t.Fatalf("chunk at %d holds other bytes", c.Pos)
		}
		if c.Skipped > 0 && (len(got) != head || c.Pos-c.Skipped != head) {
			t.Fatalf("gap of %d before %d after %d bytes, want after the head", c.Skipped, c.Pos, len(got))
		}
		skipped += c.Skipped
		got = append(got, c.Data...)
	}
	kept := len(got) - head
	if skipped+int64(len(got)) != total || kept < tail || kept > tail+2*chunk {
		t.Fatalf("%d bytes read and %d skipped; the tail is %d", len(got), skipped, kept)
	}
	if !strings.Contains(text(t, pool, joblog.Options{}), fmt.Sprintf("[... %d bytes of stream o not kept ...]\n", skipped)) {
		t.Fatal("the copy does not show the gap")
	}
	sizes, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, job)
	if err != nil || len(sizes) != 1 || sizes[0].Printed != total || sizes[0].Stored != int64(len(got)) {
		t.Fatalf("sizes %+v: %v", sizes, err)
	}
	w.Stop()
	if stored != total || trimmed != skipped || dropped != 0 {
		t.Fatalf("told of %d bytes stored, %d trimmed, %d dropped; want %d, %d, 0", stored, trimmed, dropped, total, skipped)
	}
}

func TestTailIsTrimmedWhileTheRunGoesOn(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{ChunkBytes: 1000, HeadBytes: 1000, TailBytes: 10_000, FlushBytes: 2000, RunBytes: 4000})
	write(t, w.Run(job, 1).Stream(joblog.Stdout), pattern(200_000))
	pgtest.Eventually(t, patience, func() bool {
		sizes, err := joblog.Sizes(t.Context(), pool, schema.DefaultName, job)
		return err == nil && len(sizes) == 1 && sizes[0].Printed == 200_000 && sizes[0].Stored <= 1000+10_000+10_000/8+1000
	}, "the tail was not trimmed")
}

// TestModel writes at random to four streams and compares what is stored with a naive model: all bytes of each stream.
func TestModel(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	id := job
	rapid.Check(t, func(r *rapid.T) {
		id++
		config := joblog.Config{
			ChunkBytes: rapid.IntRange(1, 50).Draw(r, "chunk"),
			HeadBytes:  int64(rapid.IntRange(-1, 300).Draw(r, "head")),
			TailBytes:  int64(rapid.IntRange(1, 300).Draw(r, "tail")),
			FlushBytes: rapid.IntRange(1, 500).Draw(r, "flush"),
			RunBytes:   rapid.IntRange(1, 1000).Draw(r, "run"),

			FlushInterval: time.Millisecond,
		}
		w := joblog.NewWriter(pool, schema.DefaultName, config)
		w.Start(t.Context())
		defer w.Stop()
		run := w.Run(id, 1)
		model := map[byte][]byte{}
		total := int64(0)
		for range rapid.IntRange(1, 60).Draw(r, "writes") {
			kind := rapid.SampledFrom([]byte("oelp")).Draw(r, "stream")
			data := []byte(rapid.StringN(0, 40, 120).Draw(r, "data"))
			write(t, run.Stream(kind), data)
			model[kind] = append(model[kind], data...)
			total += int64(len(data))
		}
		closeRun(t, run)
		checkModel(t, r, pool, id, config, model, total)
	})
}

func checkModel(t *testing.T, r *rapid.T, pool joblog.DB, id int64, config joblog.Config, model map[byte][]byte, total int64) {
	t.Helper()
	stored, skipped := int64(0), int64(0)
	place := map[byte]int64{}
	for c, err := range joblog.Read(t.Context(), pool, schema.DefaultName, id, 1, joblog.Options{}) {
		if err != nil {
			r.Fatal(err)
		}
		if c.Pos-c.Skipped != place[c.Stream] {
			r.Fatalf("stream %c: %d skipped before %d, read to %d", c.Stream, c.Skipped, c.Pos, place[c.Stream])
		}
		place[c.Stream] = c.Pos + int64(len(c.Data))
		if !bytes.Equal(c.Data, model[c.Stream][c.Pos:place[c.Stream]]) {
			r.Fatalf("stream %c at %d: got %q", c.Stream, c.Pos, c.Data)
		}
		stored += int64(len(c.Data))
		skipped += c.Skipped
	}
	head := max(0, config.HeadBytes)
	if config.HeadBytes == 0 {
		head = joblog.DefaultHeadBytes
	}
	least := min(total, head+config.TailBytes)
	if most := least + 2*int64(config.ChunkBytes); stored < least || stored > most {
		r.Fatalf("%d of %d bytes stored, want %d to %d", stored, total, least, most)
	}
}

func TestHeadAndTailOfAReading(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for _, ending := range []string{"", "\n"} {
		for _, chunk := range []int{1, 3, 64} {
			whole := "one\n\ntwo\nthree" + ending
			w := start(t, pool, joblog.Config{ChunkBytes: chunk})
			id := job + int64(chunk*2+len(ending))
			run := w.Run(id, 1)
			write(t, run.Stream(joblog.Stdout), []byte(whole))
			closeRun(t, run)
			lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
			lines[len(lines)-1] += ending
			for n := 1; n <= len(whole)+1; n++ {
				m := min(n, len(whole))
				k := min(n, len(lines))
				for name, test := range map[string]struct {
					opts joblog.Options
					want string
				}{
					"first bytes": {joblog.Options{Head: joblog.Limit{Bytes: int64(n)}}, whole[:m]},
					"last bytes":  {joblog.Options{Tail: joblog.Limit{Bytes: int64(n)}}, whole[len(whole)-m:]},
					"first lines": {joblog.Options{Head: joblog.Limit{Lines: int64(n)}}, strings.Join(lines[:k], "")},
					"last lines":  {joblog.Options{Tail: joblog.Limit{Lines: int64(n)}}, strings.Join(lines[len(lines)-k:], "")},
				} {
					var b strings.Builder
					err := joblog.Copy(&b, joblog.Read(t.Context(), pool, schema.DefaultName, id, 1, test.opts))
					if err != nil || b.String() != test.want {
						t.Errorf("%s, %d of %q in chunks of %d: got %q, want %q: %v", name, n, whole, chunk, b.String(), test.want, err)
					}
				}
			}
		}
	}
}

func TestReadGoesOnAfterAnID(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	w := start(t, pool, joblog.Config{ChunkBytes: 10})
	run := w.Run(job, 1)
	data := pattern(1000)
	write(t, run.Stream(joblog.Stdout), data)
	closeRun(t, run)
	chunks := read(t, pool, joblog.Options{})
	at := rand.IntN(len(chunks))
	rest := read(t, pool, joblog.Options{After: chunks[at].ID})
	if len(rest) != len(chunks)-at-1 || len(rest) > 0 && (rest[0].Skipped != 0 || rest[0].Pos != chunks[at+1].Pos) {
		t.Fatalf("after chunk %d of %d come %d", at, len(chunks), len(rest))
	}
}
