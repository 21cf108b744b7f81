package jobs

import "time"

// SetMoveLook sets the longest time between two looks of the mover.
func (c *Config) SetMoveLook(d time.Duration) { c.moveLook = d }
