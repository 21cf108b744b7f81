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

	"github.com/peltonq/pelton/internal/sqlfile"
)

const (
	// jobsShown is how many jobs a page of the list has.
	jobsShown = 50
	// searchTime is how long the history is searched for a page, about.
	searchTime = 700 * time.Millisecond
	// pieceTime is how long a piece of the search should take.
	pieceTime = 150 * time.Millisecond
	// firstPiece and shortestPiece are lengths of time that pieces cover.
	firstPiece    = time.Hour
	shortestPiece = 10 * time.Second
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
	if after := query.Get("after"); after != "" {
		if f.After, err = strconv.ParseInt(after, 10, 64); err != nil || f.After < 0 {
			return f, badInput("%q is no place in the list", after)
		}
	}
	return f, nil
}

// parseMoment reads a time: a date, with or without a time, in UTC unless it says otherwise, or how long ago, as 90m, 12h or 3d.
func parseMoment(name, text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return time.Time{}, nil
	}
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n < 10_000 {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, badInput("%s: %q is no time: want 2026-01-31, 2026-01-31 12:30, both in UTC, or how long ago, as 90m, 12h or 3d", name, text)
}

// idEpoch is the time whose second has the id 0, and idBits are the bits below the second.
var idEpoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

const idBits = 24

// idAt is the least id of a second.
func idAt(t time.Time) int64 { return max(0, int64(t.Sub(idEpoch)/time.Second)) << idBits }

// timeOf is the second in which an id was made.
func timeOf(id int64) time.Time { return idEpoch.Add(time.Duration(id>>idBits) * time.Second) }

// found is what a search came to.
type found struct {
	IDs  []int64
	From int64 // the search looked at ids from here on
	More bool  // there is something before that was not looked at
}

// statement is that for the states that are asked for.
func (f jobFilter) statement() string {
	switch {
	case len(f.States) == 0 || len(f.States) == len(jobStates()):
		return "find_jobs"
	case !slices.ContainsFunc(f.States, ended):
		return "find_waiting_jobs"
	}
	return "find_jobs_by_state"
}

// ended tells whether jobs in a state have ended.
func ended(state string) bool {
	return state == string(rivertype.JobStateCompleted) || state == string(rivertype.JobStateCancelled) || state == string(rivertype.JobStateDiscarded)
}

// easy tells whether every job matches, so that as many as are wanted are found at once.
func (f jobFilter) easy() bool {
	return len(f.States)+len(f.Kinds)+len(f.Queues)+len(f.Tags) == 0 && f.Text == ""
}

// findJobs looks for jobs from the newest on, in pieces of time that grow while they are quick, until a page is full, there are no
// more, or the time is up.
func (p *Page) findJobs(ctx context.Context, f jobFilter) (found, error) {
	low, high, err := p.bounds(ctx, f)
	if err != nil || high <= low {
		return found{From: low}, err
	}
	result := found{From: high}
	piece := firstPiece
	statement := f.statement()
	whole := f.easy() || statement == "find_waiting_jobs" // needs no pieces, unless it takes too long
	for began := time.Now(); result.From > low && len(result.IDs) < jobsShown; {
		if time.Since(began) > searchTime {
			break
		}
		from := max(low, result.From-int64(piece/time.Second)<<idBits)
		if whole {
			from = low
		}
		start := time.Now()
		ids, err := p.findPiece(ctx, f, statement, from, result.From, jobsShown-len(result.IDs))
		if tookTooLong(err) && ctx.Err() == nil && piece > shortestPiece && from < result.From-1<<idBits {
			if whole {
				whole = false
				if slices.Contains(f.States, string(rivertype.JobStateAvailable)) {
					statement = "find_jobs_by_state" // the line is too long to be read for a page
				}
			} else {
				piece = max(piece/16, shortestPiece)
			}
			continue
		}
		if err != nil {
			return result, err
		}
		result.IDs, result.From = append(result.IDs, ids...), from
		took := max(time.Since(start), time.Millisecond)
		piece = time.Duration(float64(piece) * min(8, max(0.25, float64(pieceTime)/float64(took))))
		piece = min(max(piece, shortestPiece), 365*24*time.Hour)
	}
	if len(result.IDs) == jobsShown {
		result.From = result.IDs[jobsShown-1]
	}
	result.More = result.From > low
	return result, nil
}

// bounds are the ids to look at: low <= id < high.
func (p *Page) bounds(ctx context.Context, f jobFilter) (low, high int64, err error) {
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, p.sql.Get("job_bounds"), pgx.QueryExecModeExec).Scan(&low, &high)
	})
	high++
	if !f.Since.IsZero() {
		low = max(low, idAt(f.Since))
	}
	if !f.Until.IsZero() {
		high = min(high, idAt(f.Until))
	}
	if f.After > 0 {
		high = min(high, f.After)
	}
	return low, high, err
}

func (p *Page) findPiece(ctx context.Context, f jobFilter, statement string, from, to int64, limit int) (ids []int64, err error) {
	args := []any{pgx.QueryExecModeExec, from, to, texts(f.Kinds), texts(f.Queues), texts(f.Tags), (*string)(nil), int32(limit)}
	if f.Text != "" {
		args[6] = &f.Text
	}
	if statement != "find_jobs" {
		args = append(args, f.States)
	}
	err = p.readWithin(ctx, searchTime, func(ctx context.Context, tx pgx.Tx) error {
		ids, err = sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[int64], statement, args...)
		return err
	})
	return ids, err
}

// texts is NULL for no filter.
func texts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
