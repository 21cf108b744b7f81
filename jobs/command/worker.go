package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Config says how command jobs run on this worker. Zero fields mean the defaults.
type Config struct {
	// Env is the base environment of every program, as "NAME=value". Defaults to this process's own; an empty slice that is
	// not nil: nothing but what the job says.
	Env []string

	// Dir is the working directory of jobs that name none, and the base of relative ones. Defaults to this process's own.
	Dir string

	// Shell is the program that runs the text of jobs with shell: true, with its flag. Defaults to sh -c (cmd /c on Windows).
	Shell []string

	// KillGrace is the time between SIGTERM and SIGKILL for jobs that do not say. Defaults to 5 s.
	KillGrace time.Duration

	// WaitDelay is how long a run waits, after its program has exited, for processes that hold its output open. Defaults to 2 s.
	WaitDelay time.Duration
}

func (c Config) withDefaults() Config {
	if c.Env == nil {
		c.Env = os.Environ()
	}
	if len(c.Shell) == 0 {
		c.Shell = defaultShell
	}
	c.KillGrace = cmp.Or(max(0, c.KillGrace), 5*time.Second)
	c.WaitDelay = cmp.Or(max(0, c.WaitDelay), 2*time.Second)
	return c
}

// Worker works command jobs.
type Worker struct {
	river.WorkerDefaults[Args]
	config Config
}

// NewWorker makes a worker for command jobs.
func NewWorker(config Config) *Worker { return &Worker{config: config.withDefaults()} }

// Register adds a worker for command jobs. It panics if there is one already.
func Register(workers *jobs.Workers, config Config) { jobs.AddWorker(workers, NewWorker(config)) }

// Timeout is what the job says; none unless it does.
func (w *Worker) Timeout(job *river.Job[Args]) time.Duration {
	return cmp.Or(time.Duration(job.Args.Timeout), -1)
}

// Work runs the job's commands in turn until one fails, and records how that went as the run's output.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	started := time.Now()
	result, err := w.runAll(ctx, job)
	if result == nil { // nothing was started
		return err
	}
	result.Seconds = seconds(time.Since(started))
	return errors.Join(err, recordOutput(ctx, result))
}

func (w *Worker) runAll(ctx context.Context, job *river.Job[Args]) (*Result, error) {
	var result *Result
	list := job.Args.list()
	for i, c := range list {
		argv, err := w.argv(c, job.Args.Shell)
		if err != nil {
			return result, err
		}
		p, err := w.program(ctx, job, argv)
		if err != nil {
			return result, err
		}
		state, err := p.run(ctx)
		if state != nil {
			result = &Result{}
			result.take(state)
			if len(list) > 1 {
				result.Command = i + 1
			}
		}
		if err != nil {
			return result, err
		}
		if result.ExitCode != 0 || result.Signal != "" {
			return result, &ExitError{c.name(argv, job.Args.Shell), result.ExitCode, result.Signal, p.lastErrors.String()}
		}
	}
	return result, nil
}

// name is what an error calls a program.
func (c Command) name(argv []string, shell bool) string {
	if shell {
		return c.text
	}
	return argv[0]
}

func (w *Worker) argv(c Command, shell bool) ([]string, error) {
	if shell {
		return append(slices.Clip(w.config.Shell), c.text), nil
	}
	return c.split()
}

func (w *Worker) program(ctx context.Context, job *river.Job[Args], argv []string) (*program, error) {
	dir, err := w.dir(job.Args.Dir)
	if err != nil {
		return nil, err
	}
	env := w.env(ctx, job)
	path, err := find(argv[0], dir, env)
	if err != nil {
		return nil, err
	}
	run := joblog.FromContext(ctx)
	return &program{
		path: path, argv: argv, dir: dir, env: env,
		grace:  cmp.Or(time.Duration(job.Args.KillGrace), w.config.KillGrace),
		delay:  w.config.WaitDelay,
		stdout: run.Stream(joblog.Stdout),
		stderr: run.Stream(joblog.Stderr),
		log:    joblog.Logger(ctx),
	}, nil
}

func (w *Worker) dir(dir string) (string, error) {
	if dir == "" {
		dir = w.config.Dir
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.config.Dir, dir)
	}
	if dir == "" {
		return "", nil
	}
	switch info, err := os.Stat(dir); {
	case err != nil:
		return "", fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("working directory %q is not a directory", dir)
	}
	return dir, nil
}

// env is the base environment, the job's own, and the job's numbers; of equal names the last counts.
func (w *Worker) env(ctx context.Context, job *river.Job[Args]) []string {
	env := slices.Clip(w.config.Env)
	for key, value := range job.Args.Env {
		env = append(env, key+"="+value)
	}
	return append(env,
		"PELTON_JOB_ID="+strconv.FormatInt(job.ID, 10),
		"PELTON_RUN="+strconv.Itoa(joblog.FromContext(ctx).Number()),
		"PELTON_ATTEMPT="+strconv.Itoa(job.Attempt))
}
