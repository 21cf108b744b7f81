package loadtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// Figures are one engine's in one round, or their medians.
type Figures struct {
	InsertPerSecond float64 `json:"insert_per_s"`
	WorkPerSecond   float64 `json:"work_per_s"`
	// WALBytesPerJob is what the server wrote to its log from the first insert until the client had stopped.
	WALBytesPerJob float64 `json:"wal_bytes_per_job"`
	// Processor time in milliseconds per 1,000 jobs, which is microseconds per job.
	ClientCPUInsert float64 `json:"client_cpu_insert_ms_per_1000"`
	ClientCPUWork   float64 `json:"client_cpu_work_ms_per_1000"`
	ServerCPUInsert float64 `json:"server_cpu_insert_ms_per_1000"`
	ServerCPUWork   float64 `json:"server_cpu_work_ms_per_1000"`
}

// books are what must agree when all is done.
type books struct {
	Jobs      int64 // in the database
	Completed int64 // jobs that are completed
	Runs      int64 // runs on record
	Waiting   int64 // jobs, or leases, that are not finished
	repeated  int64 // runs in the worker beyond each job's first
}

// CountError says that the database or the worker counted something else than the jobs that were inserted, once each.
type CountError struct {
	Engine string
	Want   int
	Got    string
}

func (e *CountError) Error() string {
	return fmt.Sprintf("%s: want %d jobs, each completed once: %s", e.Engine, e.Want, e.Got)
}

func (b books) check(e engine, n int) error {
	want := books{Jobs: int64(n), Completed: int64(n), Runs: int64(n)}
	if b == want {
		return nil
	}
	return &CountError{Engine: e.name(), Want: n, Got: fmt.Sprintf(
		"%d jobs, %d completed, %d runs on record, %d still waiting, %d runs repeated by the worker",
		b.Jobs, b.Completed, b.Runs, b.Waiting, b.repeated)}
}

// round is one engine's turn.
type round struct {
	engine    engine
	jobs      int
	workers   int
	batch     int
	pin       bool
	pinWriter bool
	log       *slog.Logger
	profile   *profiler   // nil: none
	sampler   *statements // nil: none
}

// stall is how long a drain may go without any progress.
const stall = time.Minute

// run makes a database, inserts, drains, checks the books and drops the database.
func (s *server) run(ctx context.Context, r round) (f Figures, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %d jobs: %w", r.engine.name(), r.jobs, err)
		}
	}()
	database, err := s.database(ctx, r.engine)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.drop(ctx, database)) }()
	pool, err := s.pool(ctx, database)
	if err != nil {
		return f, err
	}
	defer pool.Close()
	watch, err := pgx.Connect(ctx, s.cluster.DSN(database))
	if err != nil {
		return f, fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, watch.Close(context.WithoutCancel(ctx))) }()
	return s.measure(ctx, r, pool, watch)
}

func (s *server) measure(ctx context.Context, r round, pool *pgxpool.Pool, watch *pgx.Conn) (f Figures, err error) {
	t := newTally(r.jobs)
	c, err := r.engine.open(pool, clientOptions{workers: r.workers, worker: &noopWorker{tally: t}, log: r.log})
	if err != nil {
		return f, err
	}
	pins, err := r.openPins(ctx, watch.Config().ConnString(), c)
	defer func() {
		for _, p := range pins {
			err = errors.Join(err, p.close(ctx))
		}
	}()
	if err != nil {
		return f, err
	}
	// Only here: a checkpoint between insert and work would have the pages of the first logged whole in the second.
	if err := s.exec(ctx, "CHECKPOINT"); err != nil {
		return f, err
	}
	inserted, err := s.phase(ctx, r, "insert", func() (time.Time, error) { return time.Time{}, insertAll(ctx, c, r) })
	if err != nil {
		return f, err
	}
	if _, err := watch.Exec(ctx, "ANALYZE"); err != nil {
		return f, fmt.Errorf("analyze: %w", err)
	}
	worked, err := s.phase(ctx, r, "work", func() (time.Time, error) { return drain(ctx, r, c, t, watch) })
	if err != nil {
		return f, err
	}
	b, err := readBooks(ctx, r.engine, watch)
	if err != nil {
		return f, err
	}
	b.repeated = t.repeated()
	if err := errors.Join(b.check(r.engine, r.jobs), c.fault()); err != nil {
		return f, err
	}
	return figures(r.jobs, inserted, worked), nil
}

// openPins returns what it opened also with an error.
func (r round) openPins(ctx context.Context, dsn string, c client) ([]*pin, error) {
	var pins []*pin
	if r.pin {
		p, err := openPin(ctx, dsn)
		if err != nil {
			return pins, err
		}
		pins = append(pins, p)
	}
	if r.pinWriter {
		p, err := openPinWriter(ctx, dsn, c)
		if err != nil {
			return pins, err
		}
		pins = append(pins, p)
	}
	return pins, nil
}

// phase measures one phase. The phase may say when its clock stopped.
func (s *server) phase(ctx context.Context, r round, name string, run func() (time.Time, error)) (spent, error) {
	runtime.GC()
	if err := r.sampler.reset(ctx, s.admin); err != nil {
		return spent{}, err
	}
	if err := r.profile.start(r.engine.name(), name); err != nil {
		return spent{}, err
	}
	before, err := s.read(ctx)
	if err != nil {
		return spent{}, errors.Join(err, r.profile.stop())
	}
	stopped, err := run()
	after, readErr := s.read(ctx)
	if err := errors.Join(err, readErr, r.profile.stop()); err != nil {
		return spent{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := r.sampler.take(ctx, s.admin, r.engine.name(), name, r.jobs); err != nil {
		return spent{}, err
	}
	if !stopped.IsZero() {
		after.at = stopped
	}
	return after.since(before), nil
}

func figures(jobs int, inserted, worked spent) Figures {
	n := float64(jobs)
	perJob := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	return Figures{
		InsertPerSecond: n / inserted.took.Seconds(),
		WorkPerSecond:   n / worked.took.Seconds(),
		WALBytesPerJob:  float64(inserted.wal+worked.wal) / n,
		ClientCPUInsert: perJob(inserted.client),
		ClientCPUWork:   perJob(worked.client),
		ServerCPUInsert: perJob(inserted.server),
		ServerCPUWork:   perJob(worked.server),
	}
}

// insertAll inserts in batches, one after the other, as a loader does.
func insertAll(ctx context.Context, c client, r round) error {
	params := make([]river.InsertManyParams, 0, r.batch)
	for at := 0; at < r.jobs; at += r.batch {
		params = params[:0]
		for i := at; i < min(at+r.batch, r.jobs); i++ {
			params = append(params, river.InsertManyParams{Args: noopArgs{Number: i, Customer: "customer-" + strconv.Itoa(i%1000)}})
		}
		n, err := c.insertBulk(ctx, params)
		if err != nil {
			return err
		}
		if n != len(params) {
			return &CountError{Engine: r.engine.name(), Want: len(params), Got: fmt.Sprintf("a bulk insert says %d", n)}
		}
	}
	return nil
}

// drain works everything off and returns the time at which all was recorded: the moment at which the count that found it
// so was asked for. The client has stopped when it returns.
func drain(ctx context.Context, r round, c client, t *tally, watch *pgx.Conn) (time.Time, error) {
	if err := c.start(ctx); err != nil {
		return time.Time{}, fmt.Errorf("start: %w", err)
	}
	stopped, err := waitDrained(ctx, r, t, watch)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return stopped, errors.Join(err, c.stop(limited))
}

// waitDrained asks the database only when the worker has seen every job: until then a count would only get in the way.
func waitDrained(ctx context.Context, r round, t *tally, watch *pgx.Conn) (time.Time, error) {
	progress := time.NewTicker(stall)
	defer progress.Stop()
	for seen := int64(0); ; {
		select {
		case <-t.all:
			return waitRecorded(ctx, r, watch)
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case <-progress.C:
		}
		now := t.first.Load()
		if now == seen {
			return time.Time{}, &CountError{Engine: r.engine.name(), Want: r.jobs, Got: fmt.Sprintf("no job started for %v after %d", stall, now)}
		}
		seen = now
	}
}

func waitRecorded(ctx context.Context, r round, watch *pgx.Conn) (time.Time, error) {
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	last, since := int64(-1), time.Now()
	for {
		asked := time.Now()
		var recorded int64
		if err := watch.QueryRow(ctx, r.engine.completedSQL()).Scan(&recorded); err != nil {
			return time.Time{}, fmt.Errorf("count completed jobs: %w", err)
		}
		switch {
		case recorded == int64(r.jobs):
			return asked, nil
		case recorded != last:
			last, since = recorded, asked
		case asked.Sub(since) > stall:
			return time.Time{}, &CountError{Engine: r.engine.name(), Want: r.jobs, Got: fmt.Sprintf("%d completed, no more for %v", recorded, stall)}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

func readBooks(ctx context.Context, e engine, watch *pgx.Conn) (books, error) {
	rows, err := watch.Query(ctx, e.booksSQL())
	if err != nil {
		return books{}, fmt.Errorf("read the books: %w", err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (b books, err error) {
		return b, row.Scan(&b.Jobs, &b.Completed, &b.Runs, &b.Waiting)
	})
	if err != nil {
		return books{}, fmt.Errorf("read the books: %w", err)
	}
	return b, nil
}
