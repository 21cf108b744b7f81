package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
)

const (
	fileBatch    = 5000
	maxLineBytes = 4 << 20 // args and metadata are at most 1 MiB each
)

// enqueueFile is what the flags say of a file of jobs.
type enqueueFile struct {
	path string
	from int
}

// check refuses flags that are of one job, and a kind.
func (f enqueueFile) check(cmd *cobra.Command, args []string, then func() error) error {
	if len(args) > 0 {
		return usagef("kind %q and --file: the file's lines name their kinds", args[0])
	}
	for _, name := range []string{"args", "queue", "priority", "at", "max-attempts", "unique-key", "tag", "metadata", "pending"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s and --file: the file's lines say it for each job", name)
		}
	}
	return then()
}

// enqueuedFileJSON is the answer to a file of jobs, also when it went wrong in the middle.
type enqueuedFileJSON struct {
	Enqueued   int     `json:"enqueued"`
	Duplicates int     `json:"duplicates"` // skipped: another job held the unique key
	Lines      int     `json:"lines"`      // read and done, from the first of the file on
	Seconds    float64 `json:"seconds"`
	ResumeLine int     `json:"resume_line,omitempty"` // after an error: everything before this line is done
}

func (a *app) enqueueFile(ctx context.Context, f enqueueFile) error {
	in, size, name := a.stdin, int64(-1), "stdin"
	if f.path != "-" {
		file, err := os.Open(f.path)
		if err != nil {
			return usage(err)
		}
		defer func() { _ = file.Close() }()
		in, name = file, f.path
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
	}
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		l := &loader{client: db.client, pool: db.pool, name: name, from: f.from, progress: a.progress(size)}
		begun := time.Now()
		if f.path == "-" {
			in = newInterruptibleReader(ctx, in)
		}
		err := l.load(ctx, bufio.NewReaderSize(in, 1<<20))
		l.progress.done()
		answer := enqueuedFileJSON{l.enqueued, l.duplicates, l.done, time.Since(begun).Seconds(), 0}
		if err != nil && l.line >= l.from {
			answer.ResumeLine = l.done + 1
		}
		printErr := a.document(answer, func(w io.Writer) {
			fmt.Fprintf(w, "%s enqueued from %s in %.1f s", quantity.Of(l.enqueued, "job"), name, answer.Seconds)
			if l.duplicates > 0 {
				fmt.Fprintf(w, ", %d skipped as duplicates", l.duplicates)
			}
			fmt.Fprintln(w)
		})
		return errors.Join(err, printErr)
	})
}

// loader enqueues lines in batches. It holds one batch in memory.
type loader struct {
	client   *jobs.Client
	pool     *pgxpool.Pool
	name     string // of the file, for errors
	from     int
	progress *progress

	line                 int // read last, from 1
	batch                []river.InsertManyParams
	numbers              []int // the line of each job of the batch
	done                 int   // every line up to this one is enqueued, or was left out
	enqueued, duplicates int
}

func (l *loader) load(ctx context.Context, in *bufio.Reader) error {
	l.done = l.from - 1
	for {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		l.line++
		if errors.Is(err, errLongLine) {
			return l.failed(l.line, err)
		}
		if err != nil {
			return l.resume(fmt.Errorf("read %s, line %d: %w", l.name, l.line, err))
		}
		l.progress.read(len(text) + 1)
		if l.line < l.from {
			continue
		}
		params, err := parseLine(text)
		if err != nil {
			return l.failed(l.line, err)
		}
		if params != nil {
			l.batch, l.numbers = append(l.batch, *params), append(l.numbers, l.line)
		}
		if len(l.batch) == fileBatch {
			if err := l.flush(ctx); err != nil {
				return err
			}
		}
	}
	if l.from > 1 && l.line < l.from {
		return usagef("--from-line is %d, but %s has %s: nothing was enqueued", l.from, l.name, quantity.Of(l.line, "line"))
	}
	return l.flush(ctx)
}

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLineBytes>>20)

// readLine returns a line without its end; io.EOF after the last one.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLineBytes:
			return nil, errLongLine
		case err == nil:
			return line[:len(line)-1], nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (l *loader) flush(ctx context.Context) error {
	if len(l.batch) > 0 {
		n := 0
		err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) (err error) {
			if n, err = l.client.InsertManyFastTx(ctx, tx, l.batch); err != nil {
				return err
			}
			return l.client.AuditInsertTx(ctx, tx, jobs.EnqueuedFast(l.batch, n))
		})
		if err != nil {
			return l.batchFailed(err)
		}
		l.enqueued += n
		l.duplicates += len(l.batch) - n
		l.progress.enqueued(l.enqueued)
	}
	l.done = max(l.done, l.line)
	l.batch, l.numbers = l.batch[:0], l.numbers[:0]
	return nil
}

// batchFailed says which lines did not go in, or may not have.
func (l *loader) batchFailed(err error) error {
	if invalid, ok := errors.AsType[*jobs.InvalidJobError](err); ok {
		return l.failed(l.numbers[invalid.Index], invalid.Err)
	}
	first, last := l.numbers[0], l.numbers[len(l.numbers)-1]
	where := fmt.Errorf("%s, lines %d to %d: %w", l.name, first, last, err)
	if _, answered := errors.AsType[*pgconn.PgError](err); answered {
		return l.resume(where)
	}
	return fmt.Errorf("%w\nThe database did not answer: it is not known whether these %d jobs went in. Look (pelton job list) before you resume.\n%s",
		where, len(l.batch), l.resumeText())
}

// failed is an error in one line; nothing of its batch went in.
func (l *loader) failed(line int, err error) error {
	return usage(l.resume(fmt.Errorf("%s, line %d: %w", l.name, line, err)))
}

func (l *loader) resume(err error) error { return fmt.Errorf("%w\n%s", err, l.resumeText()) }

func (l *loader) resumeText() string {
	switch {
	case l.done < l.from && l.done == 0:
		return "Nothing was enqueued."
	case l.done < l.from:
		return fmt.Sprintf("Nothing was enqueued. Resume with --from-line %d.", l.done+1)
	}
	return fmt.Sprintf("%s enqueued, from lines %d to %d. Resume with --from-line %d.", quantity.Say(l.enqueued, "1 job was", "%d jobs were"), l.from, l.done, l.done+1)
}
