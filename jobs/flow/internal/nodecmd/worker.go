package nodecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Files lays out the files of projects.
type Files interface {
	// Dir returns the directory that holds the files of a version, made if need be. It stays while anybody works with it.
	Dir(ctx context.Context, version int64) (string, error)
}

// Config says how these jobs run.
type Config struct {
	// Files are the projects'. Required.
	Files Files

	// Programs says how programs run. Its Dir is of no use here.
	Programs command.Config

	// Secrets are the values of ${secret.NAME}. Nil: a node that needs one fails.
	Secrets Secrets

	// TempDir is where temporary directories are made. Defaults to the system's.
	TempDir string
}

// Worker works nodes that run programs.
type Worker struct {
	river.WorkerDefaults[Args]
	files   Files
	runner  *command.Runner
	secrets Secrets
	tempDir string
	sweep   sync.Once
}

// NewWorker makes a worker.
func NewWorker(config Config) *Worker {
	return &Worker{files: config.Files, runner: command.NewRunner(config.Programs), secrets: config.Secrets, tempDir: config.TempDir}
}

// Result is the output of a node's run.
type Result struct {
	Outputs map[string]string `json:"outputs,omitempty"`
	*command.Result
}

// Timeout is what the node says; none unless it does.
func (w *Worker) Timeout(job *river.Job[Args]) time.Duration {
	return cmp.Or(time.Duration(job.Args.Timeout), -1)
}

// Work runs the node's programs in turn until one fails, reads its outputs, and records both.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	w.sweep.Do(func() {
		if err := sweepPapers(w.tempDir); err != nil {
			joblog.Logger(ctx).WarnContext(ctx, "temporary directories of killed workers stay behind", "error", err)
		}
	})
	root, err := w.files.Dir(ctx, job.Args.Files)
	if err != nil {
		return fmt.Errorf("files of version %d of the project: %w", job.Args.Version, err)
	}
	dir := filepath.FromSlash(job.Args.Dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	argvs, err := job.Args.argvs(dir)
	if err != nil {
		return err
	}
	papers, err := newPapers(w.tempDir, properties(job))
	if err != nil {
		return err
	}
	defer func() {
		if err := papers.remove(); err != nil {
			joblog.Logger(ctx).WarnContext(ctx, "the temporary directory of the node stays behind", "error", err)
		}
	}()
	started := time.Now()
	l, err := w.launch(ctx, job, argvs, w.env(ctx, job, papers))
	if err != nil {
		return err
	}
	result := &Result{}
	result.Result, err = w.run(ctx, command.Spec{Dir: dir, Env: l.env}, l)
	if err = l.hide.Error(err); result.Result == nil { // nothing was started
		return err
	}
	result.Seconds = time.Since(started).Round(time.Millisecond).Seconds()
	if err == nil {
		result.Outputs, err = readOutputs(papers.outputs())
		if err = errors.Join(l.hide.Error(err), l.refuseSecrets(result.Outputs)); err != nil {
			result.Outputs = nil
		}
	}
	if err = errors.Join(err, record(ctx, result)); errors.Is(err, ErrBadOutputs) {
		joblog.Logger(ctx).ErrorContext(ctx, "the node has no outputs", "error", err)
	}
	return err
}

// properties are the node's as they go into a file: without those that hold secrets, which are in no file, and with the number of this attempt: a retry has
// the args that were made for the first.
func properties(job *river.Job[Args]) map[string]string {
	const attempt = "azkaban.job.attempt"
	all := maps.Clone(job.Args.Properties)
	maps.DeleteFunc(all, func(_, value string) bool { return job.Args.Secrets.In(value) })
	if _, set := all[attempt]; set {
		all[attempt] = strconv.Itoa(job.Attempt - 1)
	}
	return all
}

// run runs the programs in turn. Its result is the last one's.
func (w *Worker) run(ctx context.Context, spec command.Spec, l *launch) (*command.Result, error) {
	out := l.streams(joblog.FromContext(ctx))
	var result *command.Result
	for i, argv := range l.argvs {
		out.next()
		spec.Argv = argv
		one, err := w.runner.Run(ctx, spec, out.stdout, out.stderr)
		if one != nil {
			result = one
			if len(l.argvs) > 1 {
				result.Command = i + 1
			}
		}
		if err != nil {
			return result, out.close(err)
		}
	}
	return result, out.close(nil)
}

// env is the base environment, then the properties env.NAME, the node's own, what Azkaban sets, and the job's numbers.
func (w *Worker) env(ctx context.Context, job *river.Job[Args], papers *papers) []string {
	env := w.runner.Env()
	for key, value := range job.Args.Properties {
		if name, ok := strings.CutPrefix(key, "env."); ok && name != "" {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range job.Args.Env {
		env = append(env, name+"="+value)
	}
	env = append(env, "JOB_NAME="+job.Args.name(), "JOB_PROP_FILE="+papers.properties(), "JOB_OUTPUT_PROP_FILE="+papers.outputs())
	return append(env, command.Numbers(ctx, job.JobRow)...)
}

// record stores the result as the run's output, without its outputs if the database could not keep them. Under a context that
// belongs to no run, in a test say, there is none.
func record(ctx context.Context, result *Result) error {
	err := jobs.RecordOutput(ctx, result)
	switch {
	case errors.Is(err, jobs.ErrNotInWorker):
		return nil
	case err != nil && result.Outputs != nil:
		result.Outputs = nil
		return errors.Join(fmt.Errorf("%w: %w", ErrBadOutputs, err), record(ctx, result))
	}
	return err
}
