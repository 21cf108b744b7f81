package jobs

import (
	"context"
	"time"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// NoteDuty notes for a process that it has just done a duty, or has failed at it for a time.
func (c *Client) NoteDuty(ctx context.Context, process, duty string, done bool, failing time.Duration) error {
	note := store.DutyNote{Duty: duty}
	if done {
		note.Done, note.Again = new(time.Duration(0)), 10*time.Second
	}
	if failing > 0 {
		note.Failing, note.Error = failing, "it does not work"
	}
	return c.store.NoteDuties(ctx, process, []store.DutyNote{note})
}

// SetMoveLook sets the longest time between two looks of the mover.
func (c *Config) SetMoveLook(d time.Duration) { c.moveLook = d }

// SetDutyTimes sets the time between two notes of how duties get on, and between two looks at them of who has none.
func (c *Config) SetDutyTimes(note, look time.Duration) { c.noteEvery, c.lookEvery = note, look }
