package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Worker works command jobs.
type Worker struct {
	river.WorkerDefaults[Args]
	*Runner
}

// NewWorker makes a worker for command jobs.
func NewWorker(config Config) *Worker { return &Worker{Runner: NewRunner(config)} }

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
	log := joblog.FromContext(ctx)
	for i, c := range list {
		argv, err := w.argv(c, job.Args.Shell)
		if err != nil {
			return result, err
		}
		one, err := w.Run(ctx, Spec{
			Argv: argv, Name: c.name(argv, job.Args.Shell), Dir: job.Args.Dir, Env: w.env(ctx, job),
			KillGrace: time.Duration(job.Args.KillGrace),
		}, log.Stream(joblog.Stdout), log.Stream(joblog.Stderr))
		if one != nil {
			result = one
			if len(list) > 1 {
				result.Command = i + 1
			}
		}
		if err != nil {
			return result, err
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

// env is the base environment, the job's own, and the job's numbers; of equal names the last counts.
func (w *Worker) env(ctx context.Context, job *river.Job[Args]) []string {
	env := w.Env()
	for key, value := range job.Args.Env {
		env = append(env, key+"="+value)
	}
	return append(env, Numbers(ctx, job.JobRow)...)
}

// Numbers are the variables PELTON_JOB_ID, PELTON_RUN and PELTON_ATTEMPT of a job that is being worked, and what ContextWithEnv adds.
func Numbers(ctx context.Context, job *rivertype.JobRow) []string {
	env := []string{
		"PELTON_JOB_ID=" + strconv.FormatInt(job.ID, 10),
		"PELTON_RUN=" + strconv.Itoa(joblog.FromContext(ctx).Number()),
		"PELTON_ATTEMPT=" + strconv.Itoa(job.Attempt),
	}
	if more, ok := ctx.Value(envKey{}).(func(context.Context) []string); ok {
		env = append(env, more(ctx)...)
	}
	return env
}

type envKey struct{}

// ContextWithEnv returns a context under which programs have the variables, as "NAME=value", that env finds in its own context: for a
// middleware around the work of jobs that run programs.
func ContextWithEnv(ctx context.Context, env func(context.Context) []string) context.Context {
	return context.WithValue(ctx, envKey{}, env)
}
