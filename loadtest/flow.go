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
	"github.com/peltonq/pelton/jobs/flow"
)

// FlowConfig says what [Flow] does. The zero value takes about a minute.
type FlowConfig struct {
	// Nodes of the fan: one node, so many that depend on it, and one that depends on all of them. Defaults to 10,000; at most 50,000.
	Nodes int
	// Chain is the number of jobs that follow each other, for the time from a parent's end to its child's start. Defaults to 200; at
	// most 10,000.
	Chain int
	// Rounds of each; medians are reported. Defaults to 3.
	Rounds int
	// PGBin and Logger as in [DrainConfig].
	PGBin  string
	Logger *slog.Logger

	noSync bool // in tests
}

// FlowReport is the result of [Flow].
type FlowReport struct {
	Scenario string     `json:"scenario"`
	Nodes    int        `json:"nodes"`
	Chain    int        `json:"chain"`
	Postgres string     `json:"postgres"`
	NoopPerS float64    `json:"noop_nodes_per_s"` // of the fan, from the request of the run to its end
	JobsPerS float64    `json:"job_nodes_per_s"`  // of the same fan, each node a job that does nothing
	Steps    WakeDelays `json:"child_start"`      // from a parent's recorded end to its child's start
}

func (c FlowConfig) withDefaults() FlowConfig {
	setDefault(&c.Nodes, 10_000)
	setDefault(&c.Chain, 200)
	setDefault(&c.Rounds, 3)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c FlowConfig) validate() error {
	var faults []error
	within := func(what string, value, least, most int) {
		if value < least || value > most {
			faults = append(faults, fmt.Errorf("%s: %d is not between %d and %d", what, value, least, most))
		}
	}
	within("nodes", c.Nodes, 1, 50_000)
	within("chain", c.Chain, 2, 10_000)
	within("rounds", c.Rounds, 1, 100)
	return errors.Join(faults...)
}

// stepArgs are of a job that does nothing, as a node of a flow.
type stepArgs struct{}

// Kind implements river.JobArgs.
func (stepArgs) Kind() string { return "loadtest_step" }

// Flow runs large and long flows on a private server, and measures nodes a second and the time between a node and the next.
func Flow(ctx context.Context, config FlowConfig, out io.Writer) (report FlowReport, err error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return FlowReport{}, &ConfigError{fmt.Errorf("flow: %w", err)}
	}
	s, err := startServer(ctx, serverOptions{binDir: config.PGBin, noSync: config.noSync})
	if err != nil {
		return FlowReport{}, fmt.Errorf("flow: %w", err)
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	report = FlowReport{Scenario: "flow", Nodes: config.Nodes, Chain: config.Chain, Postgres: s.cluster.Version()}
	if err := s.flows(ctx, config, &report); err != nil {
		return FlowReport{}, fmt.Errorf("flow: %w", err)
	}
	if err := report.table(out); err != nil {
		return FlowReport{}, err
	}
	return report, nil
}

// flows runs each flow some times and fills the report.
func (s *server) flows(ctx context.Context, config FlowConfig, report *FlowReport) (err error) {
	database, err := s.database(ctx, peltonEngine{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(ctx, database)) }()
	pool, err := s.pool(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	house, err := newFlowHouse(ctx, pool, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, house.stop(ctx)) }()
	var noops, steps []float64
	var delays []time.Duration
	for range config.Rounds {
		perSecond, _, err := house.run(ctx, "noops", config.Nodes+2)
		if err != nil {
			return err
		}
		noops = append(noops, perSecond)
		if perSecond, _, err = house.run(ctx, "steps", config.Nodes+2); err != nil {
			return err
		}
		steps = append(steps, perSecond)
		_, r, err := house.run(ctx, "chain", config.Chain)
		if err != nil {
			return err
		}
		for i := 1; i < len(r.Nodes); i++ {
			delays = append(delays, r.Nodes[i].StartedAt.Sub(*r.Nodes[i-1].EndedAt))
		}
	}
	report.NoopPerS, report.JobsPerS, report.Steps = median(noops), median(steps), summarizeDelays(delays)
	return nil
}

// flowHouse is an executor and a scheduler of flows, with the flows that are measured.
type flowHouse struct {
	queue *jobs.Client
	flows *flow.Client
}

const flowProject = "loadtest"

func newFlowHouse(ctx context.Context, pool *pgxpool.Pool, config FlowConfig) (*flowHouse, error) {
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[stepArgs]) error { return nil }))
	queue, err := jobs.NewClient(pool, &jobs.Config{
		Queues: map[string]jobs.QueueConfig{queueName: {MaxWorkers: 1000}}, Workers: workers, Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	flows, err := flow.NewClient(pool, queue, &flow.Config{Logger: config.Logger})
	if err != nil {
		return nil, err
	}
	made, err := flowsToMeasure(config)
	if err != nil {
		return nil, err
	}
	if _, err := flows.PushFlows(ctx, flowProject, made...); err != nil {
		return nil, err
	}
	if err := queue.Start(ctx); err != nil {
		return nil, err
	}
	flows.Start(ctx)
	return &flowHouse{queue, flows}, nil
}

func (h *flowHouse) stop(ctx context.Context) error {
	h.flows.Stop()
	return h.queue.Stop(ctx)
}

// flowsToMeasure are a fan of nodes that are no jobs, the same of jobs, and a chain of jobs.
func flowsToMeasure(config FlowConfig) ([]*flow.Flow, error) {
	fan := func(name string, add func(b *flow.Builder, node string)) (*flow.Flow, error) {
		b := flow.New(name).MaxParallel(1000).Noop("first")
		names := make([]string, config.Nodes)
		for i := range names {
			names[i] = fmt.Sprintf("n%d", i)
			add(b, names[i])
			b.After("first")
		}
		return b.Noop("last").After(names...).Build()
	}
	noops, err := fan("noops", func(b *flow.Builder, node string) { b.Noop(node) })
	if err != nil {
		return nil, err
	}
	steps, err := fan("steps", func(b *flow.Builder, node string) { b.Job(node, stepArgs{}) })
	if err != nil {
		return nil, err
	}
	chain := flow.New("chain")
	for i := range config.Chain {
		chain.Job(fmt.Sprintf("n%d", i), stepArgs{})
		if i > 0 {
			chain.After(fmt.Sprintf("n%d", i-1))
		}
	}
	long, err := chain.Build()
	if err != nil {
		return nil, err
	}
	return []*flow.Flow{noops, steps, long}, nil
}

// run runs a flow and returns how many nodes a second it made.
func (h *flowHouse) run(ctx context.Context, name string, nodes int) (float64, *flow.RunDetail, error) {
	id, err := h.flows.Run(ctx, flow.RunParams{Project: flowProject, Flow: name})
	if err != nil {
		return 0, nil, err
	}
	r, err := h.flows.Ended(ctx, id, nil)
	if err != nil {
		return 0, nil, err
	}
	if r.Status != "SUCCEEDED" || len(r.Nodes) != nodes {
		return 0, nil, &CountError{Engine: EnginePelton, Want: nodes, Got: fmt.Sprintf("flow %s: %s with %d nodes", name, r.Status, len(r.Nodes))}
	}
	return float64(nodes) / r.EndedAt.Sub(r.CreatedAt).Seconds(), r, nil
}

func (r FlowReport) table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "fan of %d nodes without jobs\t%.0f nodes/s\n", r.Nodes, r.NoopPerS)
	fmt.Fprintf(w, "fan of %d jobs\t%.0f nodes/s\n", r.Nodes, r.JobsPerS)
	fmt.Fprintf(w, "from a parent's end to its child's start\tp50 %.2f ms, p95 %.2f ms, max %.2f ms\n", r.Steps.P50, r.Steps.P95, r.Steps.Max)
	return w.Flush()
}
