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
	grace time.Duration // from SIGTERM to SIGKILL
	delay time.Duration // for what holds the output open after the program's exit

	stdout, stderr io.Writer
	log            *slog.Logger
	lastErrors     lastOutput
}

const lookPause = 20 * time.Millisecond

// run starts the program, and returns when it and its group have ended and its output is read. Without a state it was not
// started. If ctx ended it, the error is ctx's cause.
func (p *program) run(ctx context.Context) (*os.ProcessState, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("program %q was not started: %w", p.argv[0], context.Cause(ctx))
	}
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

	cmd := &exec.Cmd{
		Path: p.path, Args: p.argv, Dir: p.dir, Env: p.env,
		Stdout: out.write, Stderr: errs.write, SysProcAttr: attributes(),
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start program %q: %w", p.argv[0], err)
	}
	out.start()
	errs.start()
	return p.attend(ctx, &group{process: cmd.Process}, out, errs)
}

// attend waits for the program, the rest of its group, and the end of its output; it ends them when ctx ends.
func (p *program) attend(ctx context.Context, g *group, outputs ...*output) (*os.ProcessState, error) {
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		g.awaitExit()
	}()
	var killAt time.Time // set once SIGTERM was sent
	select {
	case <-exited:
		if p.drain(ctx, outputs); ctx.Err() != nil {
			killAt = p.terminate(ctx, g)
		}
	case <-ctx.Done():
		killAt = p.terminate(ctx, g)
		p.killUnless(ctx, exited, g, killAt)
	}
	stopped := !killAt.IsZero()
	state, err := g.reap()
	if err != nil {
		return nil, fmt.Errorf("wait for program %q: %w", p.argv[0], err)
	}
	p.endRest(ctx, g, killAt)
	p.drain(context.WithoutCancel(ctx), outputs)
	for _, o := range outputs {
		o.stop()
	}
	if stopped {
		return state, fmt.Errorf("program %q was stopped: %w", p.argv[0], context.Cause(ctx))
	}
	return state, nil
}

// terminate asks the group to end, and returns when it is to be killed.
func (p *program) terminate(ctx context.Context, g *group) time.Time {
	p.log.InfoContext(ctx, "ending the program", "cause", context.Cause(ctx), "grace", p.grace.String())
	g.terminate()
	return time.Now().Add(p.grace)
}

// killUnless kills the group if the program has not exited in time, and waits until it has.
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

// endRest ends what is left of the group after the program itself, and waits until it has gone.
func (p *program) endRest(ctx context.Context, g *group, killAt time.Time) {
	if !g.alive() {
		return
	}
	if killAt.IsZero() {
		p.log.InfoContext(ctx, "the program has exited; ending the processes it left behind", "grace", p.grace.String())
		g.terminate()
		killAt = time.Now().Add(p.grace)
	}
	look := time.NewTicker(lookPause)
	defer look.Stop()
	for killed := false; g.alive(); <-look.C {
		if !killed && !time.Now().Before(killAt) {
			p.log.WarnContext(ctx, "processes of the program's group did not end in time and are killed")
			g.kill()
			killed = true
		}
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
