package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// SchedulesConfig says what [Schedules] does. The zero value takes about two minutes.
type SchedulesConfig struct {
	// Stored are the numbers of schedules to compare. Default to 1,000 and 1,000,000; each at most 10,000,000.
	Stored []int
	// Due is how many of them fire every second. Defaults to 100; at most the least of Stored.
	Due int
	// For is how long each is measured. Defaults to 20 s.
	For time.Duration
	// Statements prints the costliest statements.
	Statements bool
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	noSync bool          // in tests
	settle time.Duration // until the loop goes steadily
}

// SchedulesReport is the result of [Schedules].
type SchedulesReport struct {
	Scenario string         `json:"scenario"`
	Due      int            `json:"due_per_s"`
	Seconds  float64        `json:"seconds"`
	Postgres string         `json:"postgres"`
	Costs    []ScheduleCost `json:"costs"`
}

// ScheduleCost is what firing costs a second.
type ScheduleCost struct {
	Stored int     `json:"stored"`
	Fired  float64 `json:"fired_per_s"`
	// Statements of the firing loop: those that name its tables.
	Calls      float64 `json:"statements_per_s"`
	Millis     float64 `json:"statement_ms_per_s"` // execution
	Pages      float64 `json:"pages_per_s"`        // touched in memory or read
	ServerCPU  float64 `json:"server_cpu_ms_per_s"`
	ProcessCPU float64 `json:"process_cpu_ms_per_s"`
}

func (c SchedulesConfig) withDefaults() SchedulesConfig {
	if len(c.Stored) == 0 {
		c.Stored = []int{1000, 1_000_000}
	}
	setDefault(&c.Due, 100)
	if c.For == 0 {
		c.For = 20 * time.Second
	}
	if c.settle == 0 {
		c.settle = 3 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c SchedulesConfig) validate() error {
	var faults []error
	for _, n := range c.Stored {
		if n < 1 || n > 10_000_000 {
			faults = append(faults, fmt.Errorf("stored: %d is not between 1 and 10000000", n))
		}
	}
	if least := slices.Min(c.Stored); c.Due < 1 || c.Due > least {
		faults = append(faults, fmt.Errorf("due: %d is not between 1 and the least that is stored, %d", c.Due, least))
	}
	if c.For < time.Second {
		faults = append(faults, fmt.Errorf("for: %v is below 1s", c.For))
	}
	return errors.Join(faults...)
}

// Schedules measures what firing costs a second when few and when many schedules are stored and the same number is due.
func Schedules(ctx context.Context, config SchedulesConfig, out io.Writer) (report SchedulesReport, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return SchedulesReport{}, &ConfigError{fmt.Errorf("schedules: %w", err)}
	}
	s, err := startServer(ctx, serverOptions{config.PGBin, statementsSettings, config.noSync})
	if err != nil {
		return SchedulesReport{}, fmt.Errorf("schedules: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if err := createStatements(ctx, s.admin); err != nil {
		return SchedulesReport{}, fmt.Errorf("schedules: %w", err)
	}
	report = SchedulesReport{Scenario: "schedules", Due: config.Due, Seconds: config.For.Seconds(), Postgres: s.cluster.Version()}
	for _, stored := range config.Stored {
		cost, err := s.scheduleCost(ctx, config, stored, out)
		if err != nil {
			return SchedulesReport{}, fmt.Errorf("schedules: %d stored: %w", stored, err)
		}
		report.Costs = append(report.Costs, cost)
	}
	return report, report.table(out)
}

// storeRates stores schedules of which some fire every second, and the others on some minute of the year to come.
const storeRates = `WITH stored AS (
	INSERT INTO pelton.schedule (name, spec)
	SELECT 'rate-' || n, json_build_object('name', 'rate-' || n, 'every', CASE WHEN n <= $2 THEN '1s' ELSE '8760h' END, 'missed', 'skip',
		'job', json_build_object('kind', 'noop')) FROM generate_series(1, $1::integer) n RETURNING id
)
INSERT INTO pelton.schedule_due (schedule_id, decided, next_at, wake)
SELECT id, now(), u.at, u.at FROM stored,
	LATERAL (SELECT now() + CASE WHEN id <= $2 THEN interval '1 s' ELSE (60 + id % 525600) * interval '1 minute' END) AS u(at)`

// scheduleCost measures with a number of schedules stored.
func (s *server) scheduleCost(ctx context.Context, config SchedulesConfig, stored int, out io.Writer) (cost ScheduleCost, err error) {
	database, err := s.database(ctx, peltonEngine{})
	if err != nil {
		return ScheduleCost{}, err
	}
	defer func() { err = errors.Join(err, s.drop(ctx, database)) }()
	pool, err := s.pool(ctx, database)
	if err != nil {
		return ScheduleCost{}, err
	}
	defer pool.Close()
	for _, sql := range []string{storeRates, "VACUUM ANALYZE", "CHECKPOINT"} {
		var args []any
		if sql == storeRates {
			args = []any{stored, config.Due}
		}
		if _, err := pool.Exec(ctx, sql, args...); err != nil {
			return ScheduleCost{}, fmt.Errorf("store the schedules: %w", err)
		}
	}
	house, err := newScheduleHouse(ctx, pool, 100, config.Logger)
	if err != nil {
		return ScheduleCost{}, err
	}
	defer func() { err = errors.Join(err, house.stop(ctx)) }()
	return s.countCost(ctx, pool, config, stored, out)
}

func (s *server) countCost(ctx context.Context, pool *pgxpool.Pool, config SchedulesConfig, stored int, out io.Writer) (ScheduleCost, error) {
	if err := pause(ctx, config.settle); err != nil {
		return ScheduleCost{}, err
	}
	counted := &statements{out: out}
	if err := counted.reset(ctx, s.admin); err != nil {
		return ScheduleCost{}, err
	}
	ticks := func() (n int, err error) {
		err = pool.QueryRow(ctx, `SELECT count(*) FROM pelton.schedule_tick`).Scan(&n)
		return n, err
	}
	first, err := ticks()
	if err != nil {
		return ScheduleCost{}, fmt.Errorf("count ticks: %w", err)
	}
	before, err := s.read(ctx)
	if err != nil {
		return ScheduleCost{}, err
	}
	if err := pause(ctx, config.For); err != nil {
		return ScheduleCost{}, err
	}
	after, err := s.read(ctx)
	if err != nil {
		return ScheduleCost{}, err
	}
	used := after.since(before)
	last, err := ticks()
	if err != nil {
		return ScheduleCost{}, fmt.Errorf("count ticks: %w", err)
	}
	perSecond := func(v float64) float64 { return rounded(v / used.took.Seconds()) }
	cost := ScheduleCost{
		Stored: stored, Fired: perSecond(float64(last - first)), ServerCPU: perSecond(float64(used.server.Milliseconds())),
		ProcessCPU: perSecond(float64(used.client.Milliseconds())),
	}
	var calls, pages int64
	var millis float64
	err = s.admin.QueryRow(ctx, `SELECT coalesce(sum(calls), 0)::bigint, coalesce(sum(total_exec_time), 0)::float8,
			coalesce(sum(shared_blks_hit + shared_blks_read), 0)::bigint
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
		WHERE d.datname <> current_database() AND s.query ~ '"pelton".schedule' AND s.query !~ 'count'`).Scan(&calls, &millis, &pages)
	if err != nil {
		return ScheduleCost{}, fmt.Errorf("count statements: %w", err)
	}
	cost.Calls, cost.Millis, cost.Pages = perSecond(float64(calls)), perSecond(millis), perSecond(float64(pages))
	if config.Statements {
		return cost, counted.take(ctx, s.admin, EnginePelton, fmt.Sprintf("with %d stored", stored), last-first)
	}
	return cost, nil
}

func (r SchedulesReport) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join([]string{"stored", "fired/s", "statements/s", "statement ms/s", "pages/s", "server CPU ms/s", "process CPU ms/s", ""}, "\t"))
	for _, c := range r.Costs {
		fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t\n", c.Stored, c.Fired, c.Calls, c.Millis, c.Pages, c.ServerCPU, c.ProcessCPU)
	}
	return w.Flush()
}
