package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/periodic"
)

// BurstConfig says what [Burst] does. The zero value takes about half a minute.
type BurstConfig struct {
	// Schedules is how many are due in the same second. Defaults to 10,000; at most 1,000,000.
	Schedules int
	// Workers is how many jobs run at once. Defaults to 1,000; at most 10,000.
	Workers int
	// Rounds, each on a database of its own; the one with the median P95 is reported, and the counts of all. Defaults to 3.
	Rounds int
	// Statements prints the costliest statements.
	Statements bool
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	noSync bool // in tests
}

// BurstReport is the result of [Burst]. Times are from the tick to the start of its job, as the database has them.
type BurstReport struct {
	Scenario   string  `json:"scenario"`
	Schedules  int     `json:"schedules"`
	Rounds     int     `json:"rounds"`
	Postgres   string  `json:"postgres"`
	Fired      int     `json:"fired"`      // schedules whose tick has run, in the round with the fewest
	Duplicates int     `json:"duplicates"` // runs beyond a tick's first, in all rounds
	Lost       int     `json:"lost"`       // schedules whose tick has not run, in all rounds
	P50        float64 `json:"p50_ms"`
	P95        float64 `json:"p95_ms"`
	Max        float64 `json:"max_ms"`
	Enqueued   float64 `json:"enqueued_ms"` // from the tick to the last job's row
}

func (c BurstConfig) withDefaults() BurstConfig {
	setDefault(&c.Schedules, 10_000)
	setDefault(&c.Workers, 1000)
	setDefault(&c.Rounds, 3)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c BurstConfig) validate() error {
	var faults []error
	within := func(what string, value, most int) {
		if value < 1 || value > most {
			faults = append(faults, fmt.Errorf("%s: %d is not between 1 and %d", what, value, most))
		}
	}
	within("schedules", c.Schedules, 1_000_000)
	within("workers", c.Workers, 10_000)
	within("rounds", c.Rounds, 100)
	return errors.Join(faults...)
}

// burstArgs are of a job that does nothing.
type burstArgs struct{}

// Kind implements river.JobArgs.
func (burstArgs) Kind() string { return "noop" }

// Burst has many schedules come due in the same second on a private server, fired and worked by this process.
func Burst(ctx context.Context, config BurstConfig, out io.Writer) (report BurstReport, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return BurstReport{}, &ConfigError{fmt.Errorf("burst: %w", err)}
	}
	options := serverOptions{binDir: config.PGBin, noSync: config.noSync}
	var counted *statements
	if config.Statements {
		options.more, counted = statementsSettings, &statements{out: out}
	}
	s, err := startServer(ctx, options)
	if err != nil {
		return BurstReport{}, fmt.Errorf("burst: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if counted != nil {
		if err := createStatements(ctx, s.admin); err != nil {
			return BurstReport{}, fmt.Errorf("burst: %w", err)
		}
	}
	var rounds []BurstReport
	for range config.Rounds {
		round, err := s.burst(ctx, config, counted)
		if err != nil {
			return BurstReport{}, fmt.Errorf("burst: %w", err)
		}
		if err := round.table(out); err != nil {
			return BurstReport{}, err
		}
		rounds = append(rounds, round)
	}
	report = summarizeBursts(rounds)
	report.Scenario, report.Schedules, report.Rounds, report.Postgres = "burst", config.Schedules, config.Rounds, s.cluster.Version()
	return report, nil
}

// summarizeBursts reports the round with the median P95, and the worst of the counts.
func summarizeBursts(rounds []BurstReport) BurstReport {
	var p95s []float64
	for _, r := range rounds {
		p95s = append(p95s, r.P95)
	}
	middle := median(p95s)
	report := rounds[0]
	for _, r := range rounds {
		if r.P95 <= middle && (report.P95 > middle || r.P95 > report.P95) {
			report = r
		}
	}
	report.Duplicates, report.Lost = 0, 0
	for _, r := range rounds {
		report.Fired = min(report.Fired, r.Fired)
		report.Duplicates += r.Duplicates
		report.Lost += r.Lost
	}
	return report
}

// storeSchedules stores schedules of which each runs daily at the second that lies some seconds ahead, on the wall in Berlin, as a client would
// leave them.
const storeSchedules = `WITH due AS (
	SELECT date_trunc('second', clock_timestamp() + $2::float8 * interval '1 second') AS at
), stored AS (
	INSERT INTO pelton.schedule (name, spec)
	SELECT 'burst-' || n, json_build_object('name', 'burst-' || n, 'time_zone', 'Europe/Berlin', 'job', json_build_object('kind', 'noop'),
		'cron', to_char(due.at AT TIME ZONE 'Europe/Berlin', 'FMSS FMMI FMHH24') || ' * * *')
	FROM due, generate_series(1, $1::integer) n RETURNING id
), placed AS (
	INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake)
	SELECT stored.id, clock_timestamp(), due.at, due.at FROM stored, due
)
SELECT at FROM due`

// burst is one round.
func (s *server) burst(ctx context.Context, config BurstConfig, counted *statements) (report BurstReport, err error) {
	database, err := s.database(ctx, peltonEngine{})
	if err != nil {
		return BurstReport{}, err
	}
	defer func() { err = errors.Join(err, s.drop(ctx, database)) }()
	pool, err := s.pool(ctx, database)
	if err != nil {
		return BurstReport{}, err
	}
	defer pool.Close()
	ahead := 5 + float64(config.Schedules)/10_000 // the schedules are stored meanwhile
	if _, err := pool.Exec(ctx, storeSchedules, config.Schedules, ahead); err != nil {
		return BurstReport{}, fmt.Errorf("store the schedules: %w", err)
	}
	if _, err := pool.Exec(ctx, "ANALYZE"); err != nil {
		return BurstReport{}, fmt.Errorf("gather statistics: %w", err)
	}
	if err := counted.reset(ctx, s.admin); err != nil {
		return BurstReport{}, err
	}
	house, err := newScheduleHouse(ctx, pool, config.Workers, config.Logger)
	if err != nil {
		return BurstReport{}, err
	}
	if err := errors.Join(waitForBurst(ctx, pool, config.Schedules), house.stop(ctx)); err != nil {
		return BurstReport{}, err
	}
	if err := counted.take(ctx, s.admin, EnginePelton, "burst", config.Schedules); err != nil {
		return BurstReport{}, err
	}
	return readBurst(ctx, pool, config.Schedules)
}

// waitForBurst waits until as many jobs have ended, or none does any more.
func waitForBurst(ctx context.Context, pool *pgxpool.Pool, want int) error {
	const sql = `SELECT count(*) FROM pelton.job_attempt`
	last, since := -1, time.Now()
	for {
		var n int
		if err := pool.QueryRow(ctx, sql).Scan(&n); err != nil {
			return fmt.Errorf("count what has run: %w", err)
		}
		if n != last {
			last, since = n, time.Now()
		}
		if n >= want || time.Since(since) > 30*time.Second {
			return pause(ctx, 500*time.Millisecond) // for one too many
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func readBurst(ctx context.Context, pool *pgxpool.Pool, want int) (r BurstReport, err error) {
	err = pool.QueryRow(ctx, `WITH run AS (
			SELECT t.schedule_id, 1000 * extract(epoch FROM a.started_at - t.at)::float8 AS delay
			FROM pelton.schedule_tick t JOIN pelton.job_attempt a ON a.job_id = t.job_id WHERE t.outcome = 'fired'
		)
		SELECT count(DISTINCT schedule_id), greatest(count(*), (SELECT count(*) FROM pelton.job)) - count(DISTINCT schedule_id),
			coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay), 0), coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY delay), 0),
			coalesce(max(delay), 0),
			coalesce((SELECT 1000 * extract(epoch FROM max(j.created_at) - min(t.at))::float8 FROM pelton.job j, pelton.schedule_tick t), 0)
		FROM run`).Scan(&r.Fired, &r.Duplicates, &r.P50, &r.P95, &r.Max, &r.Enqueued)
	if err != nil {
		return BurstReport{}, fmt.Errorf("read what has run: %w", err)
	}
	r.Lost = want - r.Fired
	r.P50, r.P95, r.Max, r.Enqueued = rounded(r.P50), rounded(r.P95), rounded(r.Max), rounded(r.Enqueued)
	return r, nil
}

// scheduleHouse is an executor and a scheduler in one process.
type scheduleHouse struct {
	queue     *jobs.Client
	schedules *periodic.Client
}

func newScheduleHouse(ctx context.Context, pool *pgxpool.Pool, workers int, log *slog.Logger) (*scheduleHouse, error) {
	kinds := jobs.NewWorkers()
	jobs.AddWorker(kinds, river.WorkFunc(func(context.Context, *river.Job[burstArgs]) error { return nil }))
	queue, err := jobs.NewClient(pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{queueName: {MaxWorkers: workers}}, Workers: kinds, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	schedules, err := periodic.NewClient(pool, queue, nil, &periodic.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	if err := queue.Start(ctx); err != nil {
		return nil, err
	}
	return &scheduleHouse{queue, schedules}, schedules.Start(ctx)
}

func (h *scheduleHouse) stop(ctx context.Context) error {
	h.schedules.Stop()
	return h.queue.Stop(ctx)
}

func (r BurstReport) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "schedules fired once\t%d\n", r.Fired)
	fmt.Fprintf(w, "duplicates, lost\t%d, %d\n", r.Duplicates, r.Lost)
	fmt.Fprintf(w, "from the tick to the last job's row\t%.0f ms\n", r.Enqueued)
	fmt.Fprintf(w, "from the tick to the start of its job\tp50 %.0f ms, p95 %.0f ms, max %.0f ms\n", r.P50, r.P95, r.Max)
	return w.Flush()
}
