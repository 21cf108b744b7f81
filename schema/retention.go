package schema

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Retention says how long things are kept. Zero fields mean the defaults.
type Retention struct {
	Jobs  time.Duration // after a job's end; defaults to 7 days
	Logs  time.Duration // after they were printed; defaults to 3 days
	Dead  time.Duration // dead letters, after their death; defaults to 90 days
	Audit time.Duration // defaults to 365 days
	Ticks time.Duration // of schedules, after the time they were for; defaults to 30 days
}

const day = 24 * time.Hour

func (r Retention) withDefaults() Retention {
	r.Jobs = cmp.Or(r.Jobs, 7*day)
	r.Logs = cmp.Or(r.Logs, 3*day)
	r.Dead = cmp.Or(r.Dead, 90*day)
	r.Audit = cmp.Or(r.Audit, 365*day)
	r.Ticks = cmp.Or(r.Ticks, 30*day)
	return r
}

// Validate refuses times below zero.
func (r Retention) Validate() error {
	var faults []error
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"jobs", r.Jobs}, {"logs", r.Logs}, {"dead letters", r.Dead}, {"audit", r.Audit}, {"ticks", r.Ticks}} {
		if f.value < 0 {
			faults = append(faults, fmt.Errorf("retention of %s is %v, want a positive time", f.name, f.value))
		}
	}
	return errors.Join(faults...)
}
