package duty

import (
	"context"
	"log/slog"
	"time"

	"github.com/peltonq/pelton/internal/floor"
)

// MoveLook is the default of Config.MoveLook. The SQL function hint_due knows it too.
const MoveLook = 7500 * time.Millisecond

// Config says how the duties work. Zero fields mean the defaults.
type Config struct {
	Log *slog.Logger // defaults to slog's default logger

	// Process is who does the duties, as others see it.
	Process string

	// Lease is how long an executor must have shown no sign of life to be taken for dead. Looks are a third of it apart.
	// Defaults to 30 s.
	Lease time.Duration

	// LostLimit is how many losses in a row are poison. Defaults to 5.
	LostLimit int

	// NotifyOff sends no hints when jobs enter the line.
	NotifyOff bool

	// MoveLook is the longest time between two looks for due jobs: a job that another process schedules for sooner, and of
	// which no hint arrives, can be late by as much. Defaults to 7.5 s.
	MoveLook time.Duration

	// Sweep is the time between two rounds of the sweeper. Defaults to one minute.
	Sweep time.Duration

	// VoidGrace is how long a void is left to those who claim before the sweeper honours it. Defaults to one minute.
	VoidGrace time.Duration

	// KeepEvery is the time between two calls of Keep, the first one being at the start. Defaults to 10 minutes.
	KeepEvery time.Duration

	// Mark is how the markers work.
	Mark floor.MarkerConfig

	// Keep maintains the partitions and deletes what is past its retention. nil: nobody does.
	Keep func(ctx context.Context) error

	// Reaped is told what became of runs of dead executors; BelowMark of rows found below a mark. Both may be nil.
	Reaped    func(lost, discarded int)
	BelowMark func(relation string, n int)

	// Stepped is told of the end of each step of a duty: when it comes again, or why it failed. May be nil.
	Stepped func(duty string, again time.Duration, err error)

	// NoteEvery is the time between two notes in the database of how the duties get on. Defaults to 30 s; the view duty_report counts on it.
	NoteEvery time.Duration
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Lease == 0 {
		c.Lease = 30 * time.Second
	}
	if c.LostLimit == 0 {
		c.LostLimit = 5
	}
	if c.MoveLook == 0 {
		c.MoveLook = MoveLook
	}
	if c.Sweep == 0 {
		c.Sweep = time.Minute
	}
	if c.VoidGrace == 0 {
		c.VoidGrace = time.Minute
	}
	if c.KeepEvery == 0 {
		c.KeepEvery = 10 * time.Minute
	}
	if c.Reaped == nil {
		c.Reaped = func(int, int) {}
	}
	if c.BelowMark == nil {
		c.BelowMark = func(string, int) {}
	}
	if c.Stepped == nil {
		c.Stepped = func(string, time.Duration, error) {}
	}
	if c.NoteEvery == 0 {
		c.NoteEvery = 30 * time.Second
	}
	return c
}
