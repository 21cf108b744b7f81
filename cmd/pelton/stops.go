package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/peltonq/pelton/jobs"
)

// stopSignals are those that stop a program. SIGHUP, of a terminal that is closed, is not among them where it is ignored, as under nohup.
func stopSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// stops turns signals into the ends of two contexts: soft ends at the first of stopSignals, hard at the second.
type stops struct {
	soft, hard context.Context //nolint:containedctx // both are what this type is
	release    func()
}

// listenForStops begins to catch signals. ctx's end counts as the first one. Call release in the end.
func listenForStops(ctx context.Context) *stops {
	soft, endSoft := context.WithCancel(ctx)
	hard, endHard := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	released, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for _, end := range []context.CancelFunc{endSoft, endHard} {
			select {
			case <-signals:
				end()
			case <-released:
				return
			}
		}
	}()
	return &stops{soft: soft, hard: hard, release: func() {
		signal.Stop(signals)
		close(released)
		<-done
		endSoft()
		endHard()
	}}
}

// hardPatience is how long jobs whose contexts were cancelled have to return.
const hardPatience = 30 * time.Second

// stopClient stops softly until the timeout or the end of hard, then hard.
func stopClient(hard context.Context, client *jobs.Client, timeout time.Duration) error {
	soft, cancel := context.WithTimeout(hard, timeout)
	defer cancel()
	if client.Stop(soft) == nil {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(hard), hardPatience)
	defer cancel()
	if err := client.StopAndCancel(last); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("jobs ignore that their contexts were cancelled %v ago; they run again when the lease is over: %w",
				hardPatience, err)
		}
		return err
	}
	return nil
}
