package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

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

	// Realm names the installation, a database and schema say: when this worker begins, it ends what the programs of killed workers
	// of the same realm, host and user have left running. Defaults to "", a realm like any other.
	Realm string

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

// Runner runs programs for workers of other kinds of jobs, with the same promises.
type Runner struct{ config Config }

// NewRunner makes a runner.
func NewRunner(config Config) *Runner { return &Runner{config.withDefaults()} }

// Env is the base environment.
func (r *Runner) Env() []string { return slices.Clone(r.config.Env) }

// Spec is one program to run.
type Spec struct {
	Argv      []string      // the program, looked for in the PATH of Env, and its arguments
	Name      string        // what errors call it; "": the first of Argv
	Dir       string        // working directory; a relative one is below the runner's
	Env       []string      // all of its environment, as "NAME=value"; of equal names the last counts
	KillGrace time.Duration // from SIGTERM to SIGKILL; 0: the runner's
}

// Run runs a program until it and all that it has started have ended. Without a result it was not started. The error is an
// *ExitError if it did not exit with 0, and wraps ctx's cause if ctx ended it. What ends a program is told to the job's log.
func (r *Runner) Run(ctx context.Context, spec Spec, stdout, stderr io.Writer) (*Result, error) {
	dir, err := r.dir(spec.Dir)
	if err != nil {
		return nil, err
	}
	path, err := find(spec.Argv[0], dir, spec.Env)
	if err != nil {
		return nil, err
	}
	log := joblog.Logger(ctx)
	EndLeftovers(ctx, r.config, log)
	p := &program{
		path: path, argv: spec.Argv, dir: dir, env: spec.Env, realm: r.config.Realm,
		grace:  cmp.Or(spec.KillGrace, r.config.KillGrace),
		delay:  r.config.WaitDelay,
		stdout: stdout, stderr: stderr, log: log,
	}
	started := time.Now()
	state, err := p.run(ctx)
	if state == nil {
		return nil, err
	}
	result := &Result{Seconds: seconds(time.Since(started))}
	result.take(state)
	if err == nil && (result.ExitCode != 0 || result.Signal != "") {
		err = &ExitError{cmp.Or(spec.Name, spec.Argv[0]), result.ExitCode, result.Signal, p.lastErrors.String()}
	}
	return result, err
}

func (r *Runner) dir(dir string) (string, error) {
	if dir == "" {
		dir = r.config.Dir
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.config.Dir, dir)
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
