package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"
)

// program is one program to run.
type program struct {
	path  string
	argv  []string
	dir   string
	env   []string
	realm string
	grace time.Duration // from SIGTERM to SIGKILL
	delay time.Duration // for what holds the output open after the program's exit

	stdout, stderr io.Writer
	log            *slog.Logger
	lastErrors     LastLines
}

const (
	lookPause = 20 * time.Millisecond // between two looks at what is to end
	stormGap  = time.Millisecond      // the same while new processes appear among those that are killed
	tidyPause = time.Second           // between two looks for ended orphans while the program runs
)

// run starts the program, and returns when it and all that descends from it have ended and its output is read. Without a state
// it was not started. If ctx ended it, the error is ctx's cause.
func (p *program) run(ctx context.Context) (*os.ProcessState, error) {
	defer holdThread()()
	out, err := capture(p.stdout, nil)
	if err != nil {
		return nil, err
	}
	defer out.close()
	errs, err := capture(p.stderr, &p.lastErrors)
	if err != nil {
		return nil, err
	}
	defer errs.close()

	g := newGroup(p.realm, p.log)
	cmd := &exec.Cmd{
		Path: p.path, Args: p.argv, Dir: p.dir, Env: g.environ(p.env),
		Stdout: out.write, Stderr: errs.write, SysProcAttr: attributes(),
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("program %q was not started: %w", p.argv[0], context.Cause(ctx))
	}
	if err := g.start(cmd); err != nil {
		return nil, fmt.Errorf("start program %q: %w", p.argv[0], err)
	}
	out.start()
	errs.start()
	return p.attend(ctx, g, out, errs)
}

// attend waits for the program, for all that descends from it, and for the end of its output; it ends them when ctx ends. The
// program is reaped last: until then its group keeps its number.
func (p *program) attend(ctx context.Context, g *group, outputs ...*output) (*os.ProcessState, error) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		g.awaitExit()
	}()
	var killAt time.Time // set once SIGTERM was sent
	if p.await(ctx, g, exited) {
		if p.drain(ctx, outputs); ctx.Err() != nil {
			killAt = p.terminate(ctx, g)
		}
	} else {
		killAt = p.terminate(ctx, g)
		p.killUnless(ctx, exited, g, killAt)
	}
	stopped := !killAt.IsZero()
	p.endRest(ctx, g, killAt)
	state, err := g.reap()
	if err != nil {
		return nil, fmt.Errorf("wait for program %q: %w", p.argv[0], err)
	}
	p.drain(context.WithoutCancel(ctx), outputs)
	for _, o := range outputs {
		o.stop()
	}
	if stopped {
		return state, fmt.Errorf("program %q was stopped: %w", p.argv[0], context.Cause(ctx))
	}
	return state, nil
}

// await tells whether the program has exited before ctx ended.
func (p *program) await(ctx context.Context, g *group, exited <-chan struct{}) bool {
	tidy := time.NewTicker(tidyPause)
	defer tidy.Stop()
	for {
		select {
		case <-exited:
			return true
		case <-ctx.Done():
			return false
		case <-tidy.C:
			g.tidy()
		}
	}
}

// terminate asks all processes of the program to end, and returns when they are to be killed.
func (p *program) terminate(ctx context.Context, g *group) time.Time {
	p.log.InfoContext(ctx, "ending the program", "cause", context.Cause(ctx), "grace", p.grace.String())
	g.terminate()
	return time.Now().Add(p.grace)
}

// killUnless kills all if the program has not exited in time, and waits until it has.
func (p *program) killUnless(ctx context.Context, exited <-chan struct{}, g *group, at time.Time) {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		p.log.WarnContext(ctx, "the program did not end in time and is killed")
		g.kill()
		<-exited
	}
}

// endRest ends what is left after the program itself, and waits until it has gone: until two looks in a row find nothing, since
// one can miss a process that was just forked by one that has just ended.
func (p *program) endRest(ctx context.Context, g *group, killAt time.Time) {
	if killAt.IsZero() && g.gone() {
		return
	}
	if killAt.IsZero() {
		p.log.InfoContext(ctx, "the program has exited; ending the processes it left behind", "grace", p.grace.String())
		g.terminate()
		killAt = time.Now().Add(p.grace)
	}
	pause, killed := lookPause, false
	for empty := 0; empty < 2; {
		if !g.alive() {
			empty++
			continue
		}
		empty = 0
		if !time.Now().Before(killAt) {
			if !killed {
				p.log.WarnContext(ctx, "processes of the program did not end in time and are killed")
				killed = true
			}
			if pause = min(2*pause, lookPause); g.kill() {
				pause = stormGap
			}
		}
		<-time.After(pause)
	}
}

// drain waits for the end of the outputs, for at most the delay, or until ctx ends.
func (p *program) drain(ctx context.Context, outputs []*output) {
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	for _, o := range outputs {
		select {
		case <-o.done:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
