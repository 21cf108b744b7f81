package loadtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"
)

// WakeConfig says what [Wake] does. The zero value takes about a minute for each engine.
type WakeConfig struct {
	// Inserts is the number of single inserts. Defaults to 100; at most 100,000.
	Inserts int
	// Engines as in [DrainConfig].
	Engines []string
	// GapMin and GapMax bound the random pause before each insert. Default to 100 ms and 1 s.
	GapMin, GapMax time.Duration
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	noSync bool // in tests
}

// WakeReport is the result of [Wake].
type WakeReport struct {
	Scenario string                `json:"scenario"`
	Inserts  int                   `json:"inserts"`
	Postgres string                `json:"postgres"`
	Engines  map[string]WakeDelays `json:"engines"`
}

// WakeDelays are the times from the return of an Insert to the start of the worker, in milliseconds. A worker that was
// quicker than the answer to the insert counts as 0.
type WakeDelays struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
	Max float64 `json:"max_ms"`
}

func (c WakeConfig) withDefaults() WakeConfig {
	setDefault(&c.Inserts, 100)
	if c.GapMin == 0 && c.GapMax == 0 {
		c.GapMin, c.GapMax = 100*time.Millisecond, time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c WakeConfig) validate() error {
	if c.Inserts < 1 || c.Inserts > 100_000 {
		return fmt.Errorf("inserts: %d is not between 1 and 100000", c.Inserts)
	}
	if c.GapMin < 0 || c.GapMax < c.GapMin {
		return fmt.Errorf("gaps: %v to %v is no range", c.GapMin, c.GapMax)
	}
	return nil
}

// Wake starts a client of each engine on a private server, inserts jobs one by one at random gaps, each in a transaction of
// its own, and measures how long each waits for its worker.
func Wake(ctx context.Context, config WakeConfig, out io.Writer) (report WakeReport, err error) {
	config = config.withDefaults()
	chosen, engineErr := chooseEngines(config.Engines)
	if err := errors.Join(config.validate(), engineErr); err != nil {
		return WakeReport{}, &ConfigError{fmt.Errorf("wake: %w", err)}
	}
	s, err := startServer(ctx, serverOptions{binDir: config.PGBin, noSync: config.noSync})
	if err != nil {
		return WakeReport{}, fmt.Errorf("wake: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	report = WakeReport{
		Scenario: "wake", Inserts: config.Inserts, Postgres: s.cluster.Version(), Engines: map[string]WakeDelays{},
	}
	for _, e := range chosen {
		delays, err := s.wake(ctx, e, config)
		if err != nil {
			return WakeReport{}, fmt.Errorf("wake: %s: %w", e.name(), err)
		}
		report.Engines[e.name()] = summarizeDelays(delays)
	}
	if err := report.table(out, chosen); err != nil {
		return WakeReport{}, err
	}
	return report, nil
}

// wake returns the delay of each insert, in order.
func (s *server) wake(ctx context.Context, e engine, config WakeConfig) (delays []time.Duration, err error) {
	starts := make([]time.Time, config.Inserts)
	started := make(chan struct{}, config.Inserts+1) // room for one that must not come: never blocks the worker
	t := newTally(config.Inserts)
	t.onRun = func(number int, at time.Time) {
		if number < len(starts) && t.runs[number].Load() == 0 {
			starts[number] = at
			started <- struct{}{}
		}
	}
	err = s.withStarted(ctx, e, clientOptions{workers: 10, worker: &noopWorker{tally: t}, log: config.Logger},
		func(_ string, c client) error {
			for i := range starts {
				if err := pause(ctx, config.GapMin+rand.N(config.GapMax-config.GapMin+1)); err != nil {
					return err
				}
				if err := c.insert(ctx, noopArgs{Number: i, Customer: "wake"}); err != nil {
					return err
				}
				inserted := time.Now()
				if err := await(ctx, started, stall); err != nil {
					return fmt.Errorf("job %d: %w", i, err)
				}
				delays = append(delays, max(0, starts[i].Sub(inserted)))
			}
			return nil
		})
	if err == nil && t.repeated() > 0 {
		err = &CountError{Engine: e.name(), Want: config.Inserts, Got: fmt.Sprintf("%d runs repeated by the worker", t.repeated())}
	}
	return delays, err
}

// withStarted runs something with a started client on a fresh database, and stops the client.
func (s *server) withStarted(ctx context.Context, e engine, options clientOptions, run func(database string, c client) error) (err error) {
	database, err := s.database(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(ctx, database)) }()
	pool, err := s.pool(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	c, err := e.open(pool, options)
	if err != nil {
		return err
	}
	if err := c.start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	err = run(database, c)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	return errors.Join(err, c.stop(limited), c.fault())
}

// pause waits for a time to pass.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// await waits for one signal.
func await(ctx context.Context, signal <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-signal:
		return nil
	case <-timer.C:
		return fmt.Errorf("not started within %v", most)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func summarizeDelays(delays []time.Duration) WakeDelays {
	sorted := slices.Sorted(slices.Values(delays))
	at := func(share float64) float64 {
		i := min(len(sorted)-1, int(share*float64(len(sorted))))
		return rounded(float64(sorted[i].Microseconds()) / 1000)
	}
	return WakeDelays{P50: at(0.5), P95: at(0.95), Max: at(1)}
}

func (r *WakeReport) table(out io.Writer, order []engine) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "from commit to start, ms\tp50\tp95\tmax\t\n") // the writer keeps its first error for Flush
	for _, e := range order {
		d := r.Engines[e.name()]
		_, _ = fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t\n", e.name(), d.P50, d.P95, d.Max)
	}
	return w.Flush()
}
