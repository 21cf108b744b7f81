package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema"
)

// Log levels of commands that return, and of those that serve.
const (
	levelQuiet = slog.LevelWarn
	levelServe = slog.LevelInfo
)

// defaultSlots is how many jobs of a queue run at once where the command line does not say.
const defaultSlots = 10

// maxSlots bounds it: jobs.QueueConfig.
const maxSlots = 10_000

// serving says what a long-running command does. Zero times mean the defaults of jobs.Config.
type serving struct {
	queues   string // "default:100,etl:10"; empty: no jobs are worked
	duties   bool
	listen   string // empty: no endpoint
	fallback bool   // if listen is taken, take any port
	insecure bool   // listen may be an address that others can reach
	access   accessSettings
	alerts   alertSettings
	traces   traceSettings
	shutdown time.Duration
	pollOnly bool

	retention schema.Retention

	flows     flowSettings
	filesDir  string // where flows' files are laid out
	testKinds bool   // work jobs of kind test too

	heartbeat, lease, poll time.Duration

	given *pflag.FlagSet // all flags of the command
}

// flags are those that all long-running commands have.
func (s *serving) flags(f *pflag.FlagSet) {
	s.given = f
	f.DurationVar(&s.shutdown, "shutdown-timeout", 30*time.Second, "how long running jobs may go on after the first signal")
	f.BoolVar(&s.insecure, "insecure-listen", false, "allow --listen on an address that other machines can reach without TLS: anyone may read the metrics")
	f.BoolVar(&s.pollOnly, "poll-only", false, "do without LISTEN, for a pooler in transaction mode")
	s.flows.flags(f)
	s.traces.flags(f)
	f.StringVar(&s.filesDir, "files-dir", "", "`directory` where the files of flows are laid out (default: below the user's cache directory)")
	f.BoolVar(&s.testKinds, "test-kinds", false, "also work jobs of kind test, which Azkaban's own examples use")
	f.DurationVar(&s.heartbeat, "heartbeat", 0, "time between two signs of life")
	f.DurationVar(&s.lease, "lease", 0, "how long without a sign of life before a process counts as dead")
	f.DurationVar(&s.poll, "poll-interval", 0, "time between two looks of an idle executor that got no hint")
	for _, name := range []string{"heartbeat", "lease", "poll-interval"} {
		if err := f.MarkHidden(name); err != nil {
			panic(err) // the names are ours
		}
	}
}

// parseQueues reads "default:100,etl:10"; a name alone has defaultSlots.
func parseQueues(text string) (map[string]jobs.QueueConfig, error) {
	queues := map[string]jobs.QueueConfig{}
	if text == "" {
		return queues, nil
	}
	wrong := func(part string) error { return usagef("--queues: %q: want NAME:JOBS, as in default:100", part) }
	for part := range strings.SplitSeq(text, ",") {
		name, count, counted := strings.Cut(strings.TrimSpace(part), ":")
		slots := defaultSlots
		if counted {
			var err error
			if slots, err = strconv.Atoi(count); err != nil {
				return nil, wrong(part)
			}
		}
		if name == "" {
			return nil, wrong(part)
		}
		if slots < 1 || slots > maxSlots {
			return nil, usagef("--queues: %q: want 1 to %d jobs at once", part, maxSlots)
		}
		if _, twice := queues[name]; twice {
			return nil, usagef("--queues: queue %q is named twice", name)
		}
		queues[name] = jobs.QueueConfig{MaxWorkers: slots}
	}
	return queues, nil
}

// failedShutdown is how long running jobs may go on when the database is gone: what they do is recorded nowhere.
const failedShutdown = time.Second

// started is what a serving command prints when it is ready, and what --json prints as a document.
type started struct {
	Event       string         `json:"event"` // "started"
	Client      string         `json:"client"`
	Schema      string         `json:"schema"`
	Queues      map[string]int `json:"queues"` // jobs at once by name
	Kinds       []string       `json:"kinds,omitempty"`
	Scheduler   bool           `json:"scheduler"`
	Endpoint    string         `json:"endpoint,omitempty"`
	Alerts      string         `json:"alerts,omitempty"`
	DatabaseURL string         `json:"database_url,omitempty"` // of pelton dev
	DataDir     string         `json:"data_dir,omitempty"`     // of pelton dev, as are those below
	ServerLog   string         `json:"server_log,omitempty"`
	Postgres    string         `json:"postgres,omitempty"`
}

// serve works until the first signal, or until failed says why it cannot go on, and stops in order. ready is told once all runs.
func (a *app) serve(stop *stops, address string, s serving, failed <-chan error, ready func(started) error) (err error) {
	queues, err := parseQueues(s.queues)
	if err != nil {
		return err
	}
	pool, err := a.open(stop.soft, address, connectionsServe)
	if err != nil {
		return err
	}
	defer pool.Close()
	traced, err := a.startTracer(stop.soft, s.traces)
	if err != nil {
		return err
	}
	defer traced.stop(stop.hard)
	served, err := a.newEndpoint(pool, s)
	if err != nil {
		return usage(err)
	}
	programs := a.commandConfig(stop.soft, pool)
	programs.Env = s.alerts.hide(programs.Env)
	client, kinds, err := a.servingClient(pool, queues, s, programs, served.observer())
	if err != nil {
		return usage(err)
	}
	flows, err := a.servingFlows(pool, client, s, served.observer())
	if err != nil {
		return err
	}
	schedules, err := periodic.NewClient(pool, client, flows, &periodic.Config{
		Logger: a.logger(levelServe), SchedulerOff: !s.duties, Observer: served.observer(),
	})
	if err != nil {
		return err
	}
	alerts, err := a.newEvaluator(pool, client, s, served)
	if err != nil {
		return err
	}
	by, err := a.pageClients(stop.soft, address, s, served)
	if err != nil {
		return err
	}
	defer by.close()
	if err := served.prepare(pool, a, s, by); err != nil {
		return usage(err)
	}
	a.tellOfKeys(stop.soft)
	if len(queues) > 0 {
		command.EndLeftovers(stop.soft, programs, a.logger(levelServe))
	}
	if err := served.start(stop.soft, pool, a, s, by); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, served.close(stop.hard)) }()
	if err := client.Start(stop.soft); err != nil {
		return err
	}
	flows.Start(stop.soft)
	if err := schedules.Start(stop.soft); err != nil {
		flows.Stop()
		return errors.Join(err, stopClient(stop.hard, client, s.shutdown))
	}
	if s.duties {
		alerts.Start(stop.soft)
	}
	served.ready()
	defer func() {
		served.stopping()
		alerts.Stop()
		schedules.Stop()
		flows.Stop()
		err = errors.Join(err, stopClient(stop.hard, client, s.shutdown))
	}()
	info := started{
		Event: "started", Client: client.ID(), Schema: client.Schema(), Queues: map[string]int{}, Kinds: kinds,
		Scheduler: s.duties, Endpoint: served.url(), Alerts: s.alerts.path,
	}
	for name, q := range queues {
		info.Queues[name] = q.MaxWorkers
	}
	if err := ready(info); err != nil {
		return err
	}
	select {
	case <-stop.soft.Done():
		a.logger(levelServe).Info("stopping; a second signal cancels running jobs", "timeout", s.shutdown.String())
		return nil
	case err := <-failed:
		s.shutdown = min(s.shutdown, failedShutdown)
		return err
	case err := <-served.failed():
		return err
	}
}

func (a *app) servingClient(
	pool *pgxpool.Pool, queues map[string]jobs.QueueConfig, s serving, programs command.Config, observer jobs.Observer,
) (*jobs.Client, []string, error) {
	config := &jobs.Config{
		Queues: queues, Schema: a.schemaName(), Logger: a.logger(levelServe), PollOnly: s.pollOnly, DutiesOff: !s.duties,
		Heartbeat: s.heartbeat, Lease: s.lease, PollInterval: s.poll, Observer: observer, Retention: s.retention,
		Middleware: a.tracer.Middleware(),
	}
	var kinds []string
	if len(queues) > 0 {
		var err error
		if config.Workers, err = a.builtInWorkers(pool, programs, s); err != nil {
			return nil, nil, err
		}
		kinds = config.Workers.Kinds()
	}
	if err := s.alerts.work(a, config); err != nil {
		return nil, nil, err
	}
	client, err := jobs.NewClient(pool, config)
	return client, kinds, err
}

// pageClients are for the page and the API, if there are any. They have connections of their own, so that who looks at much does not keep the queue waiting.
func (a *app) pageClients(ctx context.Context, address string, s serving, served *endpoint) (by clients, err error) {
	if !s.access.wanted || s.listen == "" {
		return by, nil
	}
	if by.pool, err = a.open(ctx, address, connectionsPages); err != nil {
		return by, err
	}
	defer func() {
		if err != nil {
			by.close()
		}
	}()
	s.duties = false
	by.jobs, err = jobs.NewClient(by.pool, &jobs.Config{
		Schema: a.schemaName(), Logger: a.logger(levelServe), DutiesOff: true, Observer: served.observer(), Retention: s.retention,
		Middleware: a.tracer.Middleware(),
	})
	if err != nil {
		return by, usage(err)
	}
	if by.flows, err = a.servingFlows(by.pool, by.jobs, s, served.observer()); err != nil {
		return by, err
	}
	by.schedules, err = periodic.NewClient(by.pool, by.jobs, by.flows, &periodic.Config{Logger: a.logger(levelServe), SchedulerOff: true})
	by.secrets = secret.NewClient(by.pool, by.jobs, a.secretKeys())
	return by, err
}

func (c *clients) close() {
	if c.pool != nil {
		c.pool.Close()
	}
}

// servingFlows advances flows if this process has duties.
func (a *app) servingFlows(pool *pgxpool.Pool, client *jobs.Client, s serving, observer flow.StepObserver) (*flow.Client, error) {
	config, err := s.flows.config()
	if err != nil {
		return nil, err
	}
	config.Logger, config.SchedulerOff, config.Observer = a.logger(levelServe), !s.duties, a.tracer.Flows()
	config.StepObserver = observer
	flows, err := flow.NewClient(pool, client, config)
	if err != nil {
		return nil, usage(err)
	}
	return flows, nil
}

// printStarted tells people or programs that a worker or server is ready.
func (a *app) printStarted(what string) func(started) error {
	return func(info started) error {
		return a.document(info, func(w io.Writer) {
			fmt.Fprintf(w, "pelton %s is ready: client %s, schema %s", what, info.Client, info.Schema)
			if len(info.Queues) > 0 {
				fmt.Fprintf(w, ", queues %s, kinds %s", queueText(info.Queues), strings.Join(info.Kinds, ", "))
			}
			if info.Endpoint != "" {
				fmt.Fprintf(w, ", endpoint %s", info.Endpoint)
			}
			fmt.Fprintln(w)
		})
	}
}
