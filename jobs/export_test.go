package jobs

import "time"

// SetMoveLook sets the longest time between two looks of the mover.
func (c *Config) SetMoveLook(d time.Duration) { c.moveLook = d }

// SetDutyTimes sets the time between two notes of how duties get on, and between two looks at them of who has none.
func (c *Config) SetDutyTimes(note, look time.Duration) { c.noteEvery, c.lookEvery = note, look }
