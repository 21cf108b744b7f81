package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// fewestDays is for how many days partitions must be made, as the alerts have it.
const fewestDays = 7

// keeper is the duty that makes partitions.
const keeper = "keeper"

// failingFor is how long a process must have failed at a duty that others do: before, it was an accident.
const failingFor = time.Minute

// maxPaused is how many paused queues are named.
const maxPaused = 20

// finding is what a check of the installation found.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (a *app) check() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "Look whether all is well: schema, duties, executors, partitions, alerts", GroupID: groupOperate,
		Long: `Look at the database whether all is well: its schema is that of this program, the scheduler's duties are done in time, somebody works jobs,
partitions are made ahead, and no alert fires. Paused queues are named, and are no fault. It asks no server, and so works where none answers.

The exit code is 0 if all is well, 1 if something is not, 5 if the database cannot be reached, 6 if its schema is another one's.`,
		Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withAlerts(ctx, func(ctx context.Context, db database, store *alert.Store) error {
				findings, err := a.findings(ctx, db, store)
				if err != nil {
					return err
				}
				bad := 0
				for _, f := range findings {
					if !f.OK {
						bad++
					}
				}
				if err := list(a, "CHECK STATE DETAIL", findings, func(f finding) []any {
					state := "ok"
					if !f.OK {
						state = "bad"
					}
					return []any{f.Check, state, f.Detail}
				}); err != nil {
					return err
				}
				if bad > 0 {
					return fmt.Errorf("%s that something is wrong", quantity.Say(bad, fmt.Sprintf("1 of %d checks says", len(findings)), fmt.Sprintf("%d of %d checks say", bad, len(findings))))
				}
				return nil
			})
		}),
	}
}

// findings are of a schema that is of the right version.
func (a *app) findings(ctx context.Context, db database, store *alert.Store) ([]finding, error) {
	found := []finding{{"schema", true, fmt.Sprintf("schema %s is that of this program", a.schemaName())}}
	duties, err := db.client.Duties(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range duties {
		found = append(found, ofDuty(d))
	}
	executors, err := db.client.ExecutorList(ctx, &jobs.ExecutorListParams{Limit: 10_000})
	if err != nil {
		return nil, err
	}
	found = append(found, ofExecutors(executors))
	queues, err := db.client.QueueList(ctx, jobs.NewQueueListParams().First(10_000))
	if err != nil {
		return nil, err
	}
	found = append(found, ofQueues(queues.Queues))
	ahead, err := schema.ReadAhead(ctx, db.pool, a.schemaName())
	if err != nil {
		return nil, err
	}
	for _, table := range ahead {
		found = append(found, ofPartitions(table, duties))
	}
	status, err := store.Status(ctx)
	if err != nil {
		return nil, err
	}
	return append(found, ofAlerts(status)), nil
}

func ofDuty(d jobs.Duty) finding {
	f := finding{"duty " + d.Name, d.State == jobs.DutyOK, "done at " + moment(d.DoneAt)}
	switch {
	case d.State == jobs.DutyFailing:
		f.Detail = fmt.Sprintf("fails since %s at %s: %s", moment(*d.FailingSince), *d.FailedBy, *d.Error)
	case d.State == jobs.DutyLate:
		f.Detail = fmt.Sprintf("nobody has done it since %s: run pelton server", moment(d.DoneAt))
	case d.Error != nil && d.FailedBy != nil && time.Since(*d.FailingSince) > failingFor:
		f.Detail += fmt.Sprintf(", though %s fails at it since %s: %s", *d.FailedBy, moment(*d.FailingSince), *d.Error)
	}
	return f
}

func ofExecutors(all []jobs.Executor) finding {
	alive := 0
	for _, e := range all {
		if e.State == "alive" {
			alive++
		}
	}
	if alive == 0 {
		return finding{"executors", false, "no process that works jobs is alive: run pelton worker, or your service"}
	}
	return finding{"executors", true, fmt.Sprintf("%d alive", alive)}
}

// ofQueues tells of pauses, which are what somebody wanted, and no fault.
func ofQueues(all []*rivertype.Queue) finding {
	var paused []string
	for _, q := range all {
		if q.PausedAt == nil {
			continue
		}
		if q.Name == jobs.AllQueues {
			return finding{"queues", true, fmt.Sprintf("all are paused since %s: no executor takes jobs until pelton queue resume '*'", moment(*q.PausedAt))}
		}
		paused = append(paused, q.Name)
	}
	switch n := len(paused); {
	case n == 0:
		return finding{"queues", true, "none is paused"}
	case n > maxPaused:
		return finding{"queues", true, fmt.Sprintf("paused: %s and %d more", strings.Join(paused[:maxPaused], ", "), n-maxPaused)}
	}
	return finding{"queues", true, "paused: " + strings.Join(paused, ", ")}
}

// ofPartitions finds no fault in a new database whose keeper is not late with its first turn.
func ofPartitions(ahead schema.Ahead, duties []jobs.Duty) finding {
	f := finding{"partitions of " + ahead.Table, ahead.Until >= fewestDays*24*time.Hour, fmt.Sprintf("%d made ahead", ahead.Partitions)}
	switch {
	case f.OK:
	case slices.ContainsFunc(duties, func(d jobs.Duty) bool { return d.Name == keeper && d.State == jobs.DutyOK && d.DoneBy == nil }):
		f.OK = true
		f.Detail += ": the keeper, which makes them, has not had its first turn yet"
	default:
		f.Detail += fmt.Sprintf(", want enough for %d days: run pelton partitions maintain", fewestDays)
	}
	return f
}

func ofAlerts(status alert.Status) finding {
	var firing []string
	for _, one := range status.Alerts {
		if one.State == alert.StateFiring {
			firing = append(firing, strings.TrimSpace(one.Rule+" "+one.Subject))
		}
	}
	switch {
	case status.Late:
		return finding{"alerts", false, "nobody evaluates the rules: run pelton server"}
	case len(firing) > 0:
		return finding{"alerts", false, "fire: " + strings.Join(firing, ", ")}
	}
	return finding{"alerts", true, "none fires"}
}
