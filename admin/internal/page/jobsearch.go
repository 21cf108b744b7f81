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
)

const (
	// jobsShown is how many jobs a page of the list has.
	jobsShown = 50
	// firstSearch is how long jobs are looked for before a page is shown, about, and furtherSearch how long where the reader asks to search further back.
	firstSearch   = 25 * time.Millisecond
	furtherSearch = 400 * time.Millisecond
	// pieceLimit is what one piece of a search may take.
	pieceLimit = 2 * time.Second
	// firstPiece, leastPiece and largestPiece are how many jobs a piece looks at, and firstSpan is the time it goes back at most.
	firstPiece, leastPiece, largestPiece = 2 * jobsShown, 10, 50_000
	firstSpan                            = 24 * time.Hour
	// shortLine and furtherLine are how many tickets of the line are read to find jobs that are available; jobs of a longer line are found otherwise.
	shortLine, furtherLine = 300, 10_000
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

// ended tells whether jobs in a state have ended.
func ended(state string) bool {
	return state == string(rivertype.JobStateCompleted) || state == string(rivertype.JobStateCancelled) || state == string(rivertype.JobStateDiscarded)
}

// anyState tells whether jobs in all states are asked for.
func (f jobFilter) anyState() bool { return len(f.States) == 0 || len(f.States) == len(jobStates()) }

// findJobs looks for jobs from the newest on, in pieces that grow while they are quick, until a page is full, there are no more, or the time is up.
func (p *Page) findJobs(ctx context.Context, f jobFilter) (found, error) {
	began, limit, line := time.Now(), firstSearch, shortLine
	if f.Further {
		limit, line = furtherSearch, furtherLine
	}
	low, high, long, err := p.bounds(ctx, f, line)
	if err != nil || high <= low {
		return found{From: low}, err
	}
	result := found{From: high}
	rows, span := firstPiece, int64(firstSpan/time.Second)<<idBits
	for result.From > low && len(result.IDs) < jobsShown && (result.From == high || time.Since(began) < limit) {
		start, from := time.Now(), max(low, result.From-span)
		piece, err := p.findPiece(ctx, f, long, from, result.From, rows)
		if tookTooLong(err) && ctx.Err() == nil && rows > leastPiece {
			rows, span = max(rows/16, leastPiece), max(span/16, 1<<idBits)
			continue
		}
		if err != nil {
			return result, err
		}
		result.From = from
		if piece.Looked == int64(rows) {
			result.From = *piece.Least // the piece has more
		} else {
			span = min(8*span, 1<<62/8)
		}
		result.IDs = append(result.IDs, piece.IDs...)
		took := max(time.Since(start), 100*time.Microsecond)
		rows = int(float64(rows) * min(8, max(0.25, float64(limit)/3/float64(took))))
		rows = min(max(rows, leastPiece), largestPiece)
	}
	if len(result.IDs) >= jobsShown {
		result.IDs = result.IDs[:jobsShown]
		result.From = result.IDs[jobsShown-1]
	}
	result.More = result.From > low
	return result, nil
}

// bounds are the ids to look at, low <= id < high, and whether the line, if it is to be read, has more than so many tickets.
func (p *Page) bounds(ctx context.Context, f jobFilter, tickets int) (low, high int64, long bool, err error) {
	err = p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if slices.Contains(f.States, string(rivertype.JobStateAvailable)) && !f.anyState() {
			if err := tx.QueryRow(ctx, p.sql.Get("line_is_long"), pgx.QueryExecModeExec, int64(tickets)).Scan(&long); err != nil {
				return err
			}
		}
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
	return low, high, long, err
}

// foundPiece is what a piece of the search came to.
type foundPiece struct {
	IDs    []int64
	Least  *int64 // of the ids looked at; nil: none
	Looked int64
}

func (p *Page) findPiece(ctx context.Context, f jobFilter, long bool, from, to int64, rows int) (piece foundPiece, err error) {
	args := []any{pgx.QueryExecModeExec, from, to, texts(f.Kinds), texts(f.Queues), texts(f.Tags), (*string)(nil), int32(rows)}
	if f.Text != "" {
		args[6] = &f.Text
	}
	statement := "find_jobs"
	if !f.anyState() {
		statement, args = "find_jobs_by_state", append(args, f.States, long)
	}
	err = p.readWithin(ctx, pieceLimit, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, p.sql.Get(statement), args...).Scan(&piece.IDs, &piece.Least, &piece.Looked)
	})
	return piece, err
}

// texts is NULL for no filter.
func texts(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}
