package joblog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// DB is what logs are read from: a pool, a connection or a transaction.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Chunk is a piece of one stream of a run.
type Chunk struct {
	ID      int64 // rises within the run; give the last one seen as Options.After to go on
	At      time.Time
	Stream  byte
	Pos     int64 // of its first byte in its stream
	Skipped int64 // bytes of its stream that were not kept, directly before it
	Data    []byte
}

// Options choose a part of a run's log. The zero value is all of it.
type Options struct {
	Streams string // the streams wanted, as in "oe"; empty: all
	After   int64  // only chunks with larger ids
	Head    Limit  // only the beginning, of the chosen streams together
	Tail    Limit  // only the end; not together with Head

	// Pause is the longest time between two looks of Follow. Defaults to 2 s.
	Pause time.Duration
}

// Limit is a number of bytes or of lines, whichever is reached first; zero fields do not limit.
type Limit struct {
	Bytes int64
	Lines int64
}

// ErrBadOptions is returned for options that exclude each other or are out of range.
var ErrBadOptions = errors.New("bad options for reading a log")

// pageRows is how many chunks are read at once, at most 64 KiB each.
const pageRows = 32

func (o Options) check() error {
	for _, s := range []byte(o.Streams) {
		switch s {
		case Stdout, Stderr, LogLines, Reports:
		default:
			return fmt.Errorf("%w: no stream %q, want some of o, e, l, p", ErrBadOptions, s)
		}
	}
	switch {
	case min(o.Head.Bytes, o.Head.Lines, o.Tail.Bytes, o.Tail.Lines) < 0:
		return fmt.Errorf("%w: negative limit", ErrBadOptions)
	case o.Head != Limit{} && o.Tail != Limit{}:
		return fmt.Errorf("%w: head and tail at once", ErrBadOptions)
	}
	return nil
}

func (o Options) streams() []string {
	if o.Streams == "" {
		o.Streams = "oelp"
	}
	list := make([]string, len(o.Streams))
	for i := range len(o.Streams) {
		list[i] = o.Streams[i : i+1]
	}
	return list
}

// source is one run's log in the table.
type source struct {
	db     DB
	schema string
	jobID  int64
	run    int32
	opts   Options

	ceiling int64
	renew   time.Time // the ceiling
}

// ceilingKeeps is how long a ceiling is used: half the time that it is good for, by a clock that may go otherwise than the database's.
const ceilingKeeps = time.Hour

// Ceiling returns an id above those that chunks get within the next two hours. A statement that is given it is planned without the partitions made ahead.
func Ceiling(ctx context.Context, db DB, schema string) (int64, error) {
	found, err := db.Query(ctx, statements(schema).Get("ceiling"), pgx.QueryExecModeExec)
	if err != nil {
		return 0, fmt.Errorf("ceiling of logs: %w", err)
	}
	id, err := pgx.CollectExactlyOneRow(found, pgx.RowTo[int64])
	if err != nil {
		return 0, fmt.Errorf("ceiling of logs: %w", err)
	}
	return id, nil
}

// below is the ceiling of what is read.
func (s *source) below(ctx context.Context) (_ int64, err error) {
	if now := time.Now(); now.After(s.renew) {
		if s.ceiling, err = Ceiling(ctx, s.db, s.schema); err != nil {
			return 0, err
		}
		s.renew = now.Add(ceilingKeeps)
	}
	return s.ceiling, nil
}

var (
	bySchemaMu sync.Mutex
	bySchema   = map[string]*sqlfile.Set{}
)

// statements returns the room's statements for a schema.
func statements(schema string) *sqlfile.Set {
	bySchemaMu.Lock()
	defer bySchemaMu.Unlock()
	set, ok := bySchema[schema]
	if !ok {
		set = sqlfile.Load(files, "sql", schema)
		bySchema[schema] = set
	}
	return set
}

func newSource(db DB, schema string, jobID int64, run int, opts Options) (*source, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts.After = max(opts.After, secondOf(jobID)-1)
	return &source{db: db, schema: schema, jobID: jobID, run: int32(run), opts: opts}, nil
}

// Read gives the chunks of a run in order. It reads a page at a time, so that a long log costs little memory; a chunk's data
// is the caller's. An error ends the sequence. A run without a log gives nothing.
func Read(ctx context.Context, db DB, schema string, jobID int64, run int, opts Options) iter.Seq2[Chunk, error] {
	return func(yield func(Chunk, error) bool) {
		s, err := newSource(db, schema, jobID, run, opts)
		if err != nil {
			yield(Chunk{}, err)
			return
		}
		r := reader{source: s}
		if err := r.seek(ctx); err != nil {
			yield(Chunk{}, err)
			return
		}
		r.all(ctx, limited(opts.Head, yield))
	}
}

// reader is a place in a run's log.
type reader struct {
	*source
	after int64
	trim  int64          // bytes to leave out of the next chunk
	next  [streams]int64 // position expected next in each stream; -1: unknown
}

// seek goes to where the options say that the reading begins.
func (r *reader) seek(ctx context.Context) error {
	r.after = r.opts.After
	middle := r.after >= secondOf(r.jobID)
	if r.opts.Tail != (Limit{}) {
		start, trim, err := r.tailStart(ctx)
		if err != nil {
			return err
		}
		r.after, r.trim, middle = start-1, trim, true
	}
	if middle {
		for i := range r.next {
			r.next[i] = -1
		}
	}
	return nil
}

// all gives every chunk from here to the present end; false: the caller wants no more.
func (r *reader) all(ctx context.Context, yield func(Chunk, error) bool) bool {
	for {
		chunks, err := r.page(ctx)
		if err != nil {
			yield(Chunk{}, err)
			return false
		}
		for _, c := range chunks {
			if !yield(r.place(c), nil) {
				return false
			}
		}
		if len(chunks) < pageRows {
			return true
		}
	}
}

func (r *reader) page(ctx context.Context) ([]Chunk, error) {
	below, err := r.below(ctx)
	if err != nil {
		return nil, r.failed(err)
	}
	found, err := r.db.Query(ctx, statements(r.schema).Get("read"), pgx.QueryExecModeCacheDescribe,
		r.jobID, r.run, r.after, r.opts.streams(), pageRows, below)
	if err != nil {
		return nil, r.failed(err)
	}
	chunks, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (Chunk, error) {
		var c Chunk
		var stream string
		err := row.Scan(&c.ID, &c.At, &stream, &c.Pos, &c.Data)
		if err == nil && len(stream) != 1 {
			err = fmt.Errorf("stream %q of chunk %d", stream, c.ID)
		}
		if err == nil {
			c.Stream = stream[0]
		}
		return c, err
	})
	if err != nil {
		return nil, r.failed(err)
	}
	return chunks, nil
}

func (r *reader) failed(err error) error {
	return fmt.Errorf("read log of run %d of job %d: %w", r.run, r.jobID, err)
}

// place notes a chunk as read, and computes what is missing before it.
func (r *reader) place(c Chunk) Chunk {
	next := &r.next[streamIndex(c.Stream)]
	if *next >= 0 {
		c.Skipped = max(0, c.Pos-*next)
	}
	r.after, *next = c.ID, c.Pos+int64(len(c.Data))
	c.Data = c.Data[r.trim:]
	c.Pos += r.trim
	r.trim = 0
	return c
}
