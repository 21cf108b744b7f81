package page

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

const (
	// jobsShown is how many jobs a page of the list has.
	jobsShown = 50
	// firstSearch is how long jobs are looked for before a page is shown, about, and furtherSearch how long where the reader asks to search further back.
	firstSearch   = 15 * time.Millisecond
	furtherSearch = 400 * time.Millisecond
)

// jobFilter is what the list of jobs is asked for. Empty fields filter nothing.
type jobFilter struct {
	States       []string
	Kinds        []string
	Queues       []string
	Tags         []string // all of them
	IDs          []int64
	Text         string // a part of the args as they are stored
	Since, Until time.Time
	After        int64 // only smaller ids
	Further      bool  // search for longer
}

// jobStates are all states of jobs.
func jobStates() []string {
	var names []string
	for _, s := range rivertype.JobStates() {
		names = append(names, string(s))
	}
	return names
}

// parseJobFilter reads a filter from a query. Lists are separated by commas.
func parseJobFilter(query url.Values) (f jobFilter, err error) {
	list := func(name string) (all []string) {
		for _, text := range query[name] {
			for item := range strings.SplitSeq(text, ",") {
				if item = strings.TrimSpace(item); item != "" {
					all = append(all, item)
				}
			}
		}
		return all
	}
	f.States, f.Kinds, f.Queues, f.Tags, f.Text = list("state"), list("kind"), list("queue"), list("tag"), query.Get("args")
	for _, s := range f.States {
		if !slices.Contains(jobStates(), s) {
			return f, badInput("%q is no state: want one of %s", s, strings.Join(jobStates(), ", "))
		}
	}
	for _, texts := range [][]string{f.Kinds, f.Queues, f.Tags, {f.Text}} {
		for _, text := range texts {
			if strings.ContainsRune(text, 0) || len(text) > 1000 {
				return f, badInput("a filter is longer than 1,000 bytes, or holds a NUL")
			}
		}
	}
	for _, text := range list("id") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 0 || len(f.IDs) >= 1000 {
			return f, badInput("%q is no id of a job, or there are more than 1,000", text)
		}
		f.IDs = append(f.IDs, id)
	}
	if f.Since, err = parseMoment("since", query.Get("since"), time.Now()); err != nil {
		return f, err
	}
	if f.Until, err = parseMoment("until", query.Get("until"), time.Now()); err != nil {
		return f, err
	}
	f.Further = query.Get("further") != ""
	if after := query.Get("after"); after != "" {
		if f.After, err = strconv.ParseInt(after, 10, 64); err != nil || f.After < 0 {
			return f, badInput("%q is no place in the list", after)
		}
	}
	return f, nil
}

// parseMoment reads a time: a date, with or without a time, in UTC unless it says otherwise, or how long ago, as 90m, 12h or 3d.
func parseMoment(name, text string, now time.Time) (time.Time, error) {
	return parseMomentIn(name, text, "UTC", now)
}

// parseMomentIn is parseMoment whose fault names another zone, in which the caller has read dates and times already.
func parseMomentIn(name, text, zone string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	if ago, ok := parseSpan(text); ok {
		return now.Add(-ago), nil
	}
	if t, ok := parseTime(text); ok {
		return t, nil
	}
	return time.Time{}, badInput("%s: %q is no time: want 2026-01-31, 2026-01-31 12:30, both in %s, or how long ago, as 90m, 12h or 3d", name, text, zone)
}

// idEpoch is the time whose second has the id 0, and idBits are the bits below the second.
var idEpoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

const idBits = 24

// idAt is the least id of a second.
func idAt(t time.Time) int64 { return max(0, int64(t.Sub(idEpoch)/time.Second)) << idBits }

// timeOf is the second in which an id was made.
func timeOf(id int64) time.Time { return idEpoch.Add(time.Duration(id>>idBits) * time.Second) }

// ended tells whether jobs in a state have ended.
func ended(state string) bool {
	return state == string(rivertype.JobStateCompleted) || state == string(rivertype.JobStateCancelled) || state == string(rivertype.JobStateDiscarded)
}

// found is what a search came to.
type found struct {
	IDs  []int64
	From int64 // the search looked at ids from here on
	More bool  // there is something before that was not looked at
}

// findJobs looks for jobs from the newest on, until a page is full, there are no more, or the time is up.
func (p *Page) findJobs(ctx context.Context, tx pgx.Tx, f jobFilter) (found, error) {
	params := jobs.NewJobListParams().First(jobsShown).OrderBy(jobs.JobListOrderByID, jobs.SortOrderDesc).Within(firstSearch).
		Kinds(f.Kinds...).Queues(f.Queues...).TagsAll(f.Tags...).ArgsText(f.Text)
	if f.Further {
		params = params.Within(furtherSearch)
	}
	states := make([]rivertype.JobState, len(f.States))
	for i, state := range f.States {
		states[i] = rivertype.JobState(state)
	}
	params = params.States(states...)
	if !f.Since.IsZero() {
		params = params.Since(f.Since)
	}
	if !f.Until.IsZero() {
		params = params.Until(f.Until)
	}
	if f.After > 0 {
		params = params.After(jobs.JobListCursorFromJob(&rivertype.JobRow{ID: f.After}))
	}
	result, err := p.config.Jobs.JobSearchTx(ctx, tx, params)
	if err != nil {
		return found{}, err
	}
	return found{IDs: result.IDs, From: result.Reached, More: !result.Ended}, nil
}
