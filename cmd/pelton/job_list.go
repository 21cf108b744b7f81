package main

import (
	"context"
	"encoding/json"
	"fmt"

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
				if len(rows) == f.limit {
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
	flags.StringVar(&f.since, "since", "", "only jobs made since: RFC 3339, or a duration back as 2h")
	flags.StringVar(&f.until, "until", "", "only jobs made before: the same")
	flags.IntVar(&f.limit, "limit", 100, "at most so many, 1 to 10,000")
	flags.StringVar(&f.after, "after", "", "continue a list: the `CURSOR` that it printed on stderr")
	flags.BoolVar(&f.newest, "newest", false, "newest first")
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
	p := jobs.NewJobListParams().First(f.limit).States(wanted...).Kinds(f.kinds...).Queues(f.queues...).TagsAll(f.tags...)
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
