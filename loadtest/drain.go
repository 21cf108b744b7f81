package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// DrainConfig says what [Drain] does. The zero value is a full comparison of the engines, which takes some minutes.
type DrainConfig struct {
	// Jobs per round and engine. Defaults to 200,000; at most 5,000,000.
	Jobs int
	// Engines to run: "pelton", "river". Defaults to both.
	Engines []string
	// Rounds of each engine. Defaults to 5.
	Rounds int
	// Workers at once. 0 means that a warm-up tries 1,000 and 2,000 and keeps the better, for each engine.
	Workers int
	// Batch is the number of jobs per bulk insert. Defaults to 5,000.
	Batch int
	// Pin keeps a repeatable-read transaction with a snapshot open during each round, from before the first insert.
	Pin bool
	// PinWriter keeps a transaction that has enqueued a job open during each round.
	PinWriter bool
	// PGBin is the directory of the server's programs. Defaults to what is found on this machine.
	PGBin string
	// CPUProfile, when set, is where processor profiles of this process go: CPUProfile.ENGINE-PHASE-ROUND.pprof.
	CPUProfile string
	// Statements prints the costliest statements of each phase. It slows both engines down a little.
	Statements bool
	// Logger is given to the engines. Defaults to one that drops everything: what matters is in the books.
	Logger *slog.Logger

	noSync bool // in tests
}

// Limits of a DrainConfig.
const (
	maxJobs  = 5_000_000
	maxBatch = 50_000
)

func (c DrainConfig) withDefaults() DrainConfig {
	setDefault(&c.Jobs, 200_000)
	setDefault(&c.Rounds, 5)
	setDefault(&c.Batch, 5_000)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// ConfigError says which values of a configuration cannot be. Nothing was begun.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

func setDefault(value *int, to int) {
	if *value == 0 {
		*value = to
	}
}

func (c DrainConfig) validate() error {
	var faults []error
	within := func(what string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, fmt.Errorf("%s: %d is not between %d and %d", what, value, least, most))
		}
	}
	within("jobs", c.Jobs, 1, maxJobs)
	within("rounds", c.Rounds, 1, 1000)
	within("batch", c.Batch, 1, maxBatch)
	within("workers", c.Workers, 0, 10_000)
	return errors.Join(faults...)
}

// Drain inserts jobs in bulk and works them off with each engine, on a private server that it starts and removes, and
// prints a table to out. The work takes as long as it takes: cancel ctx to give up. A wrong count is a [*CountError].
func Drain(ctx context.Context, config DrainConfig, out io.Writer) (report Report, err error) {
	config = config.withDefaults()
	chosen, engineErr := chooseEngines(config.Engines)
	if err := errors.Join(config.validate(), engineErr); err != nil {
		return Report{}, &ConfigError{fmt.Errorf("drain: %w", err)}
	}
	var more map[string]string
	if config.Statements {
		more = statementsSettings
	}
	s, err := startServer(ctx, serverOptions{config.PGBin, more, config.noSync})
	if err != nil {
		return Report{}, fmt.Errorf("drain: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	d := &drainer{config: config, server: s, engines: chosen, out: out, workers: map[string]int{}, rounds: map[string][]Figures{}}
	report, err = d.run(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("drain: %w", err)
	}
	return report, nil
}

type drainer struct {
	config  DrainConfig
	server  *server
	engines []engine
	out     io.Writer
	workers map[string]int       // by engine
	rounds  map[string][]Figures // by engine
}

func (d *drainer) run(ctx context.Context) (Report, error) {
	c := d.config
	d.say("%d jobs, %d rounds, PostgreSQL %s%s\n", c.Jobs, c.Rounds, d.server.cluster.Version(), d.pinText())
	if c.Statements {
		if err := createStatements(ctx, d.server.admin); err != nil {
			return Report{}, err
		}
	}
	if err := d.warmUp(ctx); err != nil {
		return Report{}, err
	}
	for i := range c.Rounds {
		order := slices.Clone(d.engines)
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, e := range order {
			if err := d.round(ctx, e, i+1); err != nil {
				return Report{}, err
			}
		}
	}
	report := d.report()
	return report, report.table(d.out, d.engines)
}

func (d *drainer) pinText() string {
	text := ""
	if d.config.Pin {
		text += ", a snapshot is held"
	}
	if d.config.PinWriter {
		text += ", a writer stays open"
	}
	return text
}

// warmUp finds each engine's better number of workers.
func (d *drainer) warmUp(ctx context.Context) error {
	for _, e := range d.engines {
		if d.config.Workers > 0 {
			d.workers[e.name()] = d.config.Workers
			continue
		}
		best := 0.0
		for _, workers := range []int{1000, 2000} {
			r := round{
				engine: e, jobs: min(d.config.Jobs, 50_000), workers: workers, batch: d.config.Batch, log: d.config.Logger,
			}
			f, err := d.server.run(ctx, r)
			if err != nil {
				return fmt.Errorf("warm-up: %w", err)
			}
			d.say("warm-up %-7s %d workers: insert %.0f/s, work %.0f/s\n", e.name(), workers, f.InsertPerSecond, f.WorkPerSecond)
			if f.WorkPerSecond > best {
				best, d.workers[e.name()] = f.WorkPerSecond, workers
			}
		}
	}
	return nil
}

func (d *drainer) round(ctx context.Context, e engine, number int) error {
	c := d.config
	r := round{
		engine: e, jobs: c.Jobs, workers: d.workers[e.name()], batch: c.Batch, pin: c.Pin, pinWriter: c.PinWriter, log: c.Logger,
	}
	if c.CPUProfile != "" {
		r.profile = &profiler{prefix: c.CPUProfile, round: number}
	}
	if c.Statements {
		r.sampler = &statements{out: d.out}
	}
	begun := time.Now()
	f, err := d.server.run(ctx, r)
	if err != nil {
		return fmt.Errorf("round %d: %w", number, err)
	}
	d.rounds[e.name()] = append(d.rounds[e.name()], f)
	d.say("round %d %-7s insert %.0f/s, work %.0f/s, %.0f WAL bytes/job (%v)\n", number, e.name(),
		f.InsertPerSecond, f.WorkPerSecond, f.WALBytesPerJob, time.Since(begun).Round(100*time.Millisecond))
	return nil
}

func (d *drainer) report() Report {
	r := Report{
		Scenario: "drain", Pin: d.config.Pin, PinWriter: d.config.PinWriter, Jobs: d.config.Jobs, Rounds: d.config.Rounds,
		Postgres: d.server.cluster.Version(), Engines: map[string]EngineReport{},
	}
	for _, e := range d.engines {
		one := summarize(d.rounds[e.name()])
		one.Workers, one.Batch = d.workers[e.name()], d.config.Batch
		r.Engines[e.name()] = one
	}
	pelton, river := d.rounds[EnginePelton], d.rounds[EngineRiver]
	if len(pelton) > 0 && len(river) > 0 {
		r.Ratio = compare(pelton, river)
	}
	return r
}

// say prints progress; what cannot be printed is no reason to stop measuring.
func (d *drainer) say(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format, args...) }
