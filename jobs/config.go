package jobs

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
)

// Defaults, as River has them where River has one.
const (
	QueueDefault       = "default"
	PriorityDefault    = 1
	MaxAttemptsDefault = 25
	JobTimeoutDefault  = time.Minute
	MaxArgsBytes       = 1 << 20 // of args, of metadata, and of an output
)

// Config says what a client does. The zero value is a client that only enqueues and operates.
type Config struct {
	// Queues to work, by name; a queue is worked by as many goroutines at once as its MaxWorkers says. Empty: no job is worked.
	Queues map[string]QueueConfig

	// Workers are the workers by kind. Required if Queues is not empty.
	Workers *Workers

	// Schema is the Postgres schema. Defaults to "pelton".
	Schema string

	// ID names this client in attempts and executors. Defaults to host, process id and start time.
	ID string

	// Logger defaults to slog's default logger.
	Logger *slog.Logger

	// JobTimeout ends a job's context after this time, unless its worker says otherwise. Defaults to one minute; -1: never.
	JobTimeout time.Duration

	// MaxAttempts of jobs that do not say. Defaults to 25.
	MaxAttempts int

	// RetryPolicy says when a failed job runs again if its worker does not. Defaults to River's: attempt^4 seconds, +-10 %.
	RetryPolicy river.ClientRetryPolicy

	// ErrorHandler is told of errors and panics, and may cancel the job.
	ErrorHandler river.ErrorHandler

	// Hooks and Middleware are River's: insert hooks and middleware around inserts, worker ones around work.
	Hooks      []rivertype.Hook
	Middleware []rivertype.Middleware

	// Plugins are River's that may be both: each counts as a hook, as middleware, or as both, before Hooks and Middleware.
	Plugins []rivertype.Plugin

	// Observer is told of claims and finishes in batches, for metrics. May be nil.
	Observer Observer

	// Heartbeat is the time between two signs of life. Defaults to 5 s.
	Heartbeat time.Duration

	// Lease is how long the reaper must have seen no sign of life before it takes a process for dead. Defaults to 30 s; at
	// least three heartbeats.
	Lease time.Duration

	// PollInterval is the time between two looks of an idle executor that got no hint. Defaults to 5 s.
	PollInterval time.Duration

	// PollOnly does without LISTEN, for a pooler in transaction mode.
	PollOnly bool

	// NotifyOff sends no NOTIFY on enqueue, for transactions that are prepared for two-phase commit.
	NotifyOff bool

	// DutiesOff leaves the scheduler's duties (due jobs, dead executors, marks, partitions) to other processes.
	DutiesOff bool

	// AgeAfter is how long a ticket of a lower priority waits before a part of the claims takes it first. Defaults to 1 minute.
	AgeAfter time.Duration

	// LostLimit is how often in a row a job may be lost with its process before it is a dead letter: 1 to 100. Defaults to 5.
	LostLimit int

	// Retention of jobs, logs, dead letters and audit. Defaults to 7, 3, 90 and 365 days.
	Retention schema.Retention

	moveLook  time.Duration // the longest time between two looks of the mover; 0: the default
	noteEvery time.Duration // the time between two notes of how the duties get on; 0: the default
	lookEvery time.Duration // the time between two looks of a client without duties whether they are done
}

// QueueConfig says how a queue is worked.
type QueueConfig struct {
	// MaxWorkers is the number of jobs of this queue that this client runs at once, 1 to 10,000.
	MaxWorkers int
}

// maxWorkersLimit bounds QueueConfig.MaxWorkers, as in River.
const maxWorkersLimit = 10_000

// checkQueueName refuses what River refuses, so that queue names move over unchanged. Called for every new job, so no regexp.
func checkQueueName(name string) error {
	if len(name) > 64 || !isQueueName(name) {
		return &QueueNameError{name}
	}
	return nil
}

// QueueNameError is a queue's name that cannot be.
type QueueNameError struct{ Name string }

func (e *QueueNameError) Error() string {
	return fmt.Sprintf("queue name %q: want up to 64 lower-case letters and digits, separated by single _ or -", e.Name)
}

// isQueueName tells whether a name is made of lower-case letters and digits, with single _, - or | between them.
func isQueueName(name string) bool {
	separator := true // the last byte was one, or there was none
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'a' && b <= 'z' || b >= '0' && b <= '9':
			separator = false
		case !separator && (b == '_' || b == '-' || b == '|'):
			separator = true
		default:
			return false
		}
	}
	return !separator
}

func (c *Config) withDefaults() *Config {
	d := *c
	d.Schema = cmp.Or(d.Schema, schema.DefaultName)
	d.ID = cmp.Or(d.ID, defaultID())
	d.Logger = cmp.Or(d.Logger, slog.Default())
	d.JobTimeout = cmp.Or(d.JobTimeout, JobTimeoutDefault)
	d.MaxAttempts = cmp.Or(d.MaxAttempts, MaxAttemptsDefault)
	d.Heartbeat = cmp.Or(d.Heartbeat, 5*time.Second)
	d.Lease = cmp.Or(d.Lease, 30*time.Second)
	d.PollInterval = cmp.Or(d.PollInterval, 5*time.Second)
	d.AgeAfter = cmp.Or(d.AgeAfter, time.Minute)
	d.LostLimit = cmp.Or(d.LostLimit, 5)
	d.lookEvery = cmp.Or(d.lookEvery, watchEvery)
	if d.RetryPolicy == nil {
		d.RetryPolicy = &river.DefaultClientRetryPolicy{}
	}
	if d.Observer == nil {
		d.Observer = NoObserver{}
	}
	return &d
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s_%d_%s", host, os.Getpid(), time.Now().UTC().Format("2006_01_02T15_04_05_000000"))
}

func (c *Config) validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if err := schema.CheckName(c.Schema); err != nil {
		faults = append(faults, err)
	}
	if len(c.ID) > 100 {
		fault("ID is longer than 100 bytes")
	}
	for name, q := range c.Queues {
		if err := checkQueueName(name); err != nil {
			faults = append(faults, err)
		}
		if q.MaxWorkers < 1 || q.MaxWorkers > maxWorkersLimit {
			fault("queue %q: MaxWorkers is %d, want 1 to %d", name, q.MaxWorkers, maxWorkersLimit)
		}
	}
	if len(c.Queues) > 0 && (c.Workers == nil || len(c.Workers.byKind) == 0) {
		fault("Queues are set, but Workers has no worker")
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > maxAttemptsLimit {
		fault("MaxAttempts is %d, want 1 to %d", c.MaxAttempts, maxAttemptsLimit)
	}
	if c.JobTimeout < -1 {
		fault("JobTimeout is %v, want a positive time, or -1 for none", c.JobTimeout)
	}
	for name, d := range map[string]time.Duration{"Heartbeat": c.Heartbeat, "PollInterval": c.PollInterval, "AgeAfter": c.AgeAfter} {
		if d < time.Millisecond {
			fault("%s is %v, want at least 1 ms", name, d)
		}
	}
	if c.Lease < 3*c.Heartbeat {
		fault("Lease is %v, want at least three heartbeats of %v", c.Lease, c.Heartbeat)
	}
	if c.LostLimit < 1 || c.LostLimit > store.EarlierRuns {
		fault("LostLimit is %d, want 1 to %d", c.LostLimit, store.EarlierRuns)
	}
	if err := c.Retention.Validate(); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// maxAttemptsLimit is what the smallint columns hold.
const maxAttemptsLimit = 32767
