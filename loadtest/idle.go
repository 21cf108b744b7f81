package loadtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"
)

// IdleConfig says what [Idle] does. The zero value takes a bit more than a minute for each engine.
type IdleConfig struct {
	// For is how long statements are counted. Defaults to one minute.
	For time.Duration
	// Settle is the time between the start of a client and the start of the count. Defaults to 10 s.
	Settle time.Duration
	// Engines as in [DrainConfig]. Defaults to Pelton alone: River is set to poll often here, and that is what it would show.
	Engines []string
	// DutiesOff measures a Pelton client that only executes: the scheduler's duties are left to another process.
	DutiesOff bool
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	noSync bool // in tests
}

// IdleReport is the result of [Idle].
type IdleReport struct {
	Scenario string                    `json:"scenario"`
	Seconds  float64                   `json:"seconds"`
	Duties   bool                      `json:"duties"`
	Postgres string                    `json:"postgres"`
	Engines  map[string]IdleStatements `json:"engines"`
}

// IdleStatements counts what an idle client executes, transaction commands included.
type IdleStatements struct {
	// PerMinute leaves the heartbeat out.
	PerMinute float64 `json:"statements_per_min"`
	// HeartbeatPerMinute counts the statements by which a client says that it lives.
	HeartbeatPerMinute float64 `json:"heartbeat_per_min"`
	// Statements are all, by text, the most frequent first.
	Statements []IdleStatement `json:"statements"`
}

// IdleStatement is one kind of statement.
type IdleStatement struct {
	Query     string  `json:"query"`
	PerMinute float64 `json:"per_min"`
	Heartbeat bool    `json:"heartbeat"`
}

func (c IdleConfig) withDefaults() IdleConfig {
	if c.For == 0 {
		c.For = time.Minute
	}
	if c.Settle == 0 {
		c.Settle = 10 * time.Second
	}
	if len(c.Engines) == 0 {
		c.Engines = []string{EnginePelton}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Idle starts a client of each engine on a private server without any job and counts its statements by pg_stat_statements.
func Idle(ctx context.Context, config IdleConfig, out io.Writer) (report IdleReport, err error) {
	config = config.withDefaults()
	chosen, err := chooseEngines(config.Engines)
	if err != nil {
		return IdleReport{}, &ConfigError{fmt.Errorf("idle: %w", err)}
	}
	if config.For < 0 || config.Settle < 0 {
		return IdleReport{}, &ConfigError{fmt.Errorf("idle: times must not be negative: for %v, settle %v", config.For, config.Settle)}
	}
	s, err := startServer(ctx, serverOptions{config.PGBin, statementsSettings, config.noSync})
	if err != nil {
		return IdleReport{}, fmt.Errorf("idle: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if err := createStatements(ctx, s.admin); err != nil {
		return IdleReport{}, fmt.Errorf("idle: %w", err)
	}
	report = IdleReport{
		Scenario: "idle", Seconds: config.For.Seconds(), Duties: !config.DutiesOff, Postgres: s.cluster.Version(), Engines: map[string]IdleStatements{},
	}
	for _, e := range chosen {
		counted, err := s.idle(ctx, e, config)
		if err != nil {
			return IdleReport{}, fmt.Errorf("idle: %s: %w", e.name(), err)
		}
		report.Engines[e.name()] = counted
	}
	if err := report.table(out, chosen); err != nil {
		return IdleReport{}, err
	}
	return report, nil
}

func (s *server) idle(ctx context.Context, e engine, config IdleConfig) (counted IdleStatements, err error) {
	options := clientOptions{
		workers: 100, worker: &noopWorker{tally: newTally(0)}, log: config.Logger, dutiesOff: config.DutiesOff,
	}
	err = s.withStarted(ctx, e, options, func(string, client) error {
		if err := pause(ctx, config.Settle); err != nil {
			return err
		}
		if err := (&statements{}).reset(ctx, s.admin); err != nil {
			return err
		}
		begun := time.Now()
		if err := pause(ctx, config.For); err != nil {
			return err
		}
		found, err := readStatements(ctx, s.admin)
		counted = countIdle(e, found, time.Since(begun))
		return err
	})
	return counted, err
}

func countIdle(e engine, found []statement, over time.Duration) IdleStatements {
	counted := IdleStatements{Statements: []IdleStatement{}}
	for _, one := range found {
		rate := float64(one.Calls) / over.Minutes()
		beat := e.heartbeat(one.Query)
		if beat {
			counted.HeartbeatPerMinute += rate
		} else {
			counted.PerMinute += rate
		}
		counted.Statements = append(counted.Statements, IdleStatement{oneLine(one.Query, 150), rounded(rate), beat})
	}
	slices.SortStableFunc(counted.Statements, func(a, b IdleStatement) int { return cmp.Compare(b.PerMinute, a.PerMinute) })
	counted.PerMinute, counted.HeartbeatPerMinute = rounded(counted.PerMinute), rounded(counted.HeartbeatPerMinute)
	return counted
}

func (r *IdleReport) table(out io.Writer, order []engine) error {
	for _, e := range order {
		of := r.Engines[e.name()]
		_, err := fmt.Fprintf(out, "%s, idle: %.1f statements a minute beside %.1f of its heartbeat\n",
			e.name(), of.PerMinute, of.HeartbeatPerMinute)
		for _, one := range of.Statements {
			if err != nil {
				break
			}
			mark := ""
			if one.Heartbeat {
				mark = " (heartbeat)"
			}
			_, err = fmt.Fprintf(out, "%8.1f  %s%s\n", one.PerMinute, one.Query, mark)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
