package schema

import "time"

// Retention says how long things are kept. Zero fields mean the defaults.
type Retention struct {
	Jobs  time.Duration // after a job's end; defaults to 7 days
	Logs  time.Duration // after they were printed; defaults to 3 days
	Dead  time.Duration // dead letters, after their death; defaults to 90 days
	Audit time.Duration // defaults to 365 days
}
