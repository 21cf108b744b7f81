package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

// jobFilter is what the flags say of jobs to list.
type jobFilter struct {
	states, kinds, queues, tags []string
	limit                       int
	after, since, until         string
	newest                      bool
	within                      time.Duration
}

func (a *app) jobList() *cobra.Command {
	var f jobFilter
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List jobs, oldest first",
		Example: "  pelton job list --state running,retryable --queue etl --limit 20",
		Args:    arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			params, err := f.params()
			if err != nil {
				return err
			}
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				result, err := db.client.JobList(ctx, params)
				if err != nil {
					return err
				}
				rows := document.NewJobs(result.Jobs)
				if err := list(a, jobHead, rows, jobCells); err != nil {
					return err
				}
				if result.Stopped {
					a.stoppedAt(*result.SearchedTo, f.newest)
				}
				if len(rows) == f.limit || result.Stopped {
					return a.more(result)
				}
				return nil
			})
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.states, "state", nil, "only jobs in these states")
	flags.StringSliceVar(&f.kinds, "kind", nil, "only jobs of these kinds")
	flags.StringSliceVar(&f.queues, "queue", nil, "only jobs of these queues")
	flags.StringSliceVar(&f.tags, "tag", nil, "only jobs with all of these tags")
	flags.StringVar(&f.since, "since", "", "only jobs made since: RFC 3339, a date in UTC, or a duration back as 2h or 3d")
	flags.StringVar(&f.until, "until", "", "only jobs made before: the same")
	flags.IntVar(&f.limit, "limit", 100, "at most so many, 1 to 10,000")
	flags.StringVar(&f.after, "after", "", "continue a list: the `CURSOR` that it printed on stderr")
	flags.BoolVar(&f.newest, "newest", false, "newest first")
	flags.DurationVar(&f.within, "within", 10*time.Second, "search for about so long; then it says how far it came, and how to go on. 0: until the end")
	return cmd
}

func (f jobFilter) params() (*jobs.JobListParams, error) {
	wanted, err := parseStates(f.states)
	if err != nil {
		return nil, err
	}
	if err := checkLimit(f.limit); err != nil {
		return nil, err
	}
	since, err := parsePast(f.since)
	if err != nil {
		return nil, err
	}
	until, err := parsePast(f.until)
	if err != nil {
		return nil, err
	}
	if f.within < 0 {
		return nil, usagef("--within is %v, want 0 or more", f.within)
	}
	p := jobs.NewJobListParams().First(f.limit).Within(f.within).States(wanted...).Kinds(f.kinds...).Queues(f.queues...).TagsAll(f.tags...)
	if !since.IsZero() {
		p = p.Since(since)
	}
	if !until.IsZero() {
		p = p.Until(until)
	}
	if f.newest {
		p = p.OrderBy(jobs.JobListOrderByID, jobs.SortOrderDesc)
	}
	if f.after != "" {
		var cursor jobs.JobListCursor
		if err := cursor.UnmarshalText([]byte(f.after)); err != nil {
			return nil, usagef("--after: %w", err)
		}
		p = p.After(&cursor)
	}
	return p, nil
}

// more says how to go on after a full page.
func (a *app) more(result *jobs.JobListResult) error {
	cursor, err := result.LastCursor.MarshalText()
	if err != nil {
		return err
	}
	a.mayBeMore("after", string(cursor))
	return nil
}

// stoppedAt says how far a search came whose time was up.
func (a *app) stoppedAt(at time.Time, newest bool) {
	direction := "up to"
	if newest {
		direction = "down to"
	}
	if !a.json {
		fmt.Fprintf(a.stderr, "pelton: the time was up; jobs made %s %s were looked at\n", direction, at.UTC().Format(time.RFC3339))
		return
	}
	line, _ := json.Marshal(map[string]any{"searched_to": at.UTC()})
	fmt.Fprintf(a.stderr, "%s\n", line)
}

// mayBeMore names the flag, and its value, with which a list goes on.
func (a *app) mayBeMore(flag string, value any) {
	if !a.json {
		fmt.Fprintf(a.stderr, "pelton: there may be more: --%s %v\n", flag, value)
		return
	}
	line, _ := json.Marshal(map[string]any{flag: value})
	fmt.Fprintf(a.stderr, "%s\n", line)
}

func checkLimit(limit int) error {
	if limit < 1 || limit > 10_000 {
		return usagef("--limit is %d, want 1 to 10,000", limit)
	}
	return nil
}
