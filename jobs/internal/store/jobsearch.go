package store

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
)

const (
	// leastPiece and largestPiece are how many jobs a piece of a search looks at.
	leastPiece, largestPiece = 100, 50_000
	// largestRead is how many jobs' ids of a long line are read at once.
	largestRead = 500_000
	// pieceTime is how long a piece should take where the search has all the time it needs.
	pieceTime = 100 * time.Millisecond
	// briefly is below what time a search counts as brief: it reads shortLine tickets of the line at most to find jobs that are available, others longLine. Jobs
	// of a longer line are found among all jobs, which those that are wanted are mostly the newest of; but if they are wanted from the oldest on, by its tickets (searchLine).
	briefly             = 100 * time.Millisecond
	shortLine, longLine = 300, 10_000
	// lineTime is what reading a line of lineBytes may take: a million tickets, or ten million jobs in tickets of a hundred. A search that has less time, or a line that has
	// more bytes, is not read whole.
	lineTime, lineBytes = 500 * time.Millisecond, 100 << 20
)

// pace is how fast a search goes on: in pieces that grow while they are quick, until its time is up.
type pace struct {
	began  time.Time
	within time.Duration // 0: until the end
	rows   int           // that the next piece looks at
	start  time.Time     // of the piece
}

func newPace(page JobPage) *pace {
	return &pace{began: time.Now(), within: page.Within, rows: max(leastPiece, page.Limit)}
}

func (p *pace) begin() { p.start = time.Now() }

// next ends a piece: it tells by what factor the next one is to be larger, and whether the time is up, or nearly so. The last piece is as large as the time that is left.
func (p *pace) next() (factor float64, over bool) {
	each := pieceTime
	if p.within > 0 {
		left := p.within - time.Since(p.began)
		each, over = min(p.within/3, left), left <= p.within/12
	}
	factor = min(8, max(0.25, float64(each)/float64(time.Since(p.start)+1)))
	p.rows = min(max(int(float64(p.rows)*factor), leastPiece), largestPiece)
	return factor, over
}

// searchByID finds jobs in the order of their ids. A piece covers a span of ids that grows too, so that its plan has few partitions.
func (s *Store) searchByID(ctx context.Context, db DB, filter JobFilter, page JobPage) (found FoundIDs, err error) {
	low, high, err := s.jobBounds(ctx, db, filter, page)
	if err != nil {
		return found, err
	}
	end := low // the last id of the list
	if !page.Descending {
		end = max(low, high-1)
	}
	text, args := inOrder(s.sql.Get("search_jobs"), page.Descending), searchArgs(filter)
	if states := stateNames(filter.States); states != nil {
		looked, byLine, err := s.looked(ctx, db, filter, page)
		if err != nil {
			return found, err
		}
		if byLine {
			return s.searchLine(ctx, db, filter, page, low, high)
		}
		text, args = s.searchStates(looked, page.Descending), append(args, states)
	}
	span, pace := int64(24*time.Hour/time.Second)<<idBits, newPace(page)
	for low < high {
		from, to := max(low, high-span), high
		if !page.Descending {
			from, to = low, min(high, low+span)
		}
		var ids []int64
		var last *int64
		var looked int
		pace.begin()
		args[1], args[2], args[12] = from, to, pace.rows
		if err := db.QueryRow(ctx, text, args...).Scan(&ids, &last, &looked); err != nil {
			return found, err
		}
		found.IDs = append(found.IDs, ids...)
		if len(found.IDs) >= page.Limit {
			found.IDs = found.IDs[:page.Limit]
			found.Reached = found.IDs[page.Limit-1]
			found.Ended = found.Reached == end
			return found, nil
		}
		switch whole := looked < pace.rows; {
		case whole && page.Descending:
			high = from
		case whole:
			low = to
		case page.Descending:
			high = *last
		default:
			low = *last + 1
		}
		if looked < pace.rows {
			span = min(8*span, math.MaxInt64/16)
		}
		if _, over := pace.next(); over && low < high {
			if found.Reached = high; !page.Descending {
				found.Reached = low - 1
			}
			found.Stopped = &Position{ID: found.Reached}
			return found, nil
		}
	}
	found.Reached, found.Ended = end, true
	return found, nil
}

// jobBounds are the ids to look at: low <= id < high.
func (s *Store) jobBounds(ctx context.Context, db DB, filter JobFilter, page JobPage) (low, high int64, err error) {
	// Its plan has all partitions whatever is asked, so it may be kept: making it takes ten times as long as running it.
	if err := db.QueryRow(ctx, s.sql.Get("job_bounds")).Scan(&low, &high); err != nil {
		return 0, 0, err
	}
	high = after(high)
	if len(filter.IDs) > 0 {
		low, high = max(low, slices.Min(filter.IDs)), min(high, after(slices.Max(filter.IDs)))
	}
	if since := firstID(filter.Since); since != nil {
		low = max(low, *since)
	}
	if until := firstID(filter.Until); until != nil {
		high = min(high, *until)
	}
	switch {
	case page.AfterID == 0:
	case page.Descending:
		high = min(high, page.AfterID)
	default:
		low = max(low, after(page.AfterID))
	}
	return low, high, nil
}

// after is the id that follows. None follows the greatest there can be, which somebody may have given by hand.
func after(id int64) int64 {
	if id == math.MaxInt64 {
		return id
	}
	return id + 1
}

// inOrder puts the order of ids into a search.
func inOrder(text string, descending bool) string {
	order, end, first, from := "ASC", "max", "least", ">="
	if descending {
		order, end, first, from = "DESC", "min", "greatest", "<="
	}
	return strings.NewReplacer("{order}", order, "{end}", end, "{first}", first, "{from}", from).Replace(text)
}

// searchStates is the statement that searches by states the jobs that another names.
func (s *Store) searchStates(looked string, descending bool) string {
	return inOrder(strings.Replace(s.sql.Get("search_states"), "{looked}", s.sql.Get(looked), 1), descending)
}

// looked names the statement that gives the jobs to look at for those in the states asked for: of the places that such jobs are in, or among all jobs, where most
// are in such states or the line is too long to be read; byLine: not even there, but by the tickets of a long line.
func (s *Store) looked(ctx context.Context, db DB, filter JobFilter, page JobPage) (statement string, byLine bool, err error) {
	completed := slices.Contains(filter.States, rivertype.JobStateCompleted)
	switch available := slices.Contains(filter.States, rivertype.JobStateAvailable); {
	case len(filter.IDs) > 0:
		return "looked_at_ids", false, nil
	case completed && (available || allEnded(filter.States)):
		return "looked_at_all", false, nil
	case !available:
		return "looked_in_places", false, nil
	}
	tickets := longLine
	if page.Within > 0 && page.Within < briefly {
		tickets = shortLine
	}
	var long, large bool
	if err = db.QueryRow(ctx, s.sql.Get("line_is_long"), pgx.QueryExecModeCacheDescribe, int64(tickets), int64(lineBytes)).Scan(&long, &large); err != nil {
		return "", false, err
	}
	if !long {
		return "looked_in_places", false, nil
	}
	intime := page.Within == 0 || page.Within >= lineTime && !large
	return "looked_at_all", len(filter.States) == 1 && !page.Descending && intime, nil
}

// searchLine finds jobs that are available, the oldest first, by the tickets of the line: low <= id < high. It reads the line whole for the first largestPiece jobs
// that stand in it, and then for every largestRead, since reading it takes longer than looking at them.
func (s *Store) searchLine(ctx context.Context, db DB, filter JobFilter, page JobPage, low, high int64) (found FoundIDs, err error) {
	end := max(low, high-1)
	text, args, pace := s.searchStates("looked_at_ids", false), append(searchArgs(filter), stateNames(filter.States)), newPace(page)
	read := largestPiece
	for more := true; more; read = largestRead {
		rows, err := db.Query(ctx, s.sql.Get("line_ids"), pgx.QueryExecModeCacheDescribe, low, high, read)
		if err != nil {
			return found, err
		}
		inLine, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return found, err
		}
		more = len(inLine) > 0 // a job may stand in the line twice, so fewer than were asked for do not mean the end
		for len(inLine) > 0 {
			piece := inLine[:min(pace.rows, len(inLine))]
			inLine = inLine[len(piece):]
			low = after(piece[len(piece)-1])
			pace.begin()
			var ids []int64
			args[1], args[2], args[11], args[12] = piece[0], low, piece, len(piece)
			if err := db.QueryRow(ctx, text, args...).Scan(&ids, nil, nil); err != nil {
				return found, err
			}
			if found.IDs = append(found.IDs, ids...); len(found.IDs) >= page.Limit {
				found.IDs = found.IDs[:page.Limit]
				found.Reached = found.IDs[page.Limit-1]
				return found, nil
			}
			if _, over := pace.next(); over && low < high {
				found.Reached = low - 1
				found.Stopped = &Position{ID: found.Reached}
				return found, nil
			}
		}
	}
	found.Reached, found.Ended = end, true
	return found, nil
}

// searchArgs are the arguments of search_jobs; those of the piece are put in for each.
func searchArgs(f JobFilter) []any {
	return []any{
		pgx.QueryExecModeCacheDescribe, nil, nil, nullIfNo(f.Kinds), nullIfNo(f.Queues), nullIfNo(f.Priorities), nullIfNo(f.TagsAny), nullIfNo(f.TagsAll),
		nullIfEmpty(f.Args), nullIfEmpty(f.Text), nullIfEmpty(f.Metadata), nullIfNo(f.IDs), nil,
	}
}

// firstWindow and largestWindow are how much time a piece of a search by the time of the end covers, and clockSkew is how far the clocks of executors, which their
// runs' ends are by, are taken to differ from the database's. Ends beyond are found with the last piece.
const (
	firstWindow, leastWindow, largestWindow = time.Minute, 10 * time.Millisecond, 1000 * 24 * time.Hour
	clockSkew                               = time.Hour
)

var farPast, farFuture = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// searchByEnd finds jobs that have ended, in the order of their ends, window by window.
func (s *Store) searchByEnd(ctx context.Context, db DB, filter JobFilter, page JobPage) (found FoundIDs, err error) {
	low, high, err := s.jobBounds(ctx, db, filter, JobPage{})
	if err != nil {
		return found, err
	}
	var now time.Time
	if err := db.QueryRow(ctx, "SELECT clock_timestamp()", pgx.QueryExecModeCacheDescribe).Scan(&now); err != nil {
		return found, err
	}
	first, last := TimeOfID(low).Add(-clockSkew), now.Add(clockSkew) // jobs end after they are made
	at, order, sign := Position{ID: -1, Time: &farPast}, "ASC", ">"
	if page.Descending {
		at, order, sign = Position{ID: math.MaxInt64, Time: &farFuture}, "DESC", "<"
	}
	if page.AfterID != 0 && page.AfterTime != nil {
		at = Position{ID: page.AfterID, Time: page.AfterTime}
	}
	text := strings.NewReplacer("{order}", order, "{sign}", sign).Replace(s.sql.Get("search_ended"))
	window, pace := firstWindow, newPace(page)
	for low < high {
		from, to := windowAt(*at.Time, window, first, last, page.Descending)
		if !from.Before(to) {
			break
		}
		var ids []int64
		var ended *time.Time
		var id *int64
		var looked int
		pace.begin()
		err := db.QueryRow(ctx, text, pgx.QueryExecModeCacheDescribe, from, to, *at.Time, at.ID, nullIfNo(filter.Kinds), nullIfNo(filter.Queues),
			nullIfNo(filter.Priorities), nullIfNo(filter.TagsAny), nullIfNo(filter.TagsAll), nullIfEmpty(filter.Args), nullIfEmpty(filter.Metadata),
			stateNames(filter.States), pace.rows, low, high).Scan(&ids, &ended, &id, &looked)
		if err != nil {
			return found, err
		}
		if found.IDs = append(found.IDs, ids...); len(found.IDs) >= page.Limit {
			found.IDs = found.IDs[:page.Limit]
			return found, nil
		}
		whole, begun := looked < pace.rows, *at.Time
		switch {
		case !whole:
			at = Position{ID: *id, Time: ended}
		case page.Descending:
			at = Position{ID: -1, Time: &from} // what ended then was looked at
		default:
			at = Position{ID: -1, Time: &to}
		}
		factor, over := pace.next()
		if !whole && begun.After(farPast) && begun.Before(farFuture) {
			window = ended.Sub(begun).Abs() // has so many
		}
		window = min(max(time.Duration(factor*float64(window)), leastWindow), largestWindow)
		if looked == 0 {
			if window, err = s.gapAt(ctx, db, *at.Time, order, sign); err != nil {
				return found, err
			}
		}
		if over && at.Time.After(farPast) && at.Time.Before(farFuture) {
			found.Stopped = &at
			return found, nil
		}
	}
	found.Ended = true
	return found, nil
}

// gapAt is how much time passes from a place on in which probably nothing ended, and some more: by the ids of the jobs that ran.
func (s *Store) gapAt(ctx context.Context, db DB, at time.Time, order, sign string) (time.Duration, error) {
	var id *int64
	text := strings.NewReplacer("{order}", order, "{sign}", sign).Replace(s.sql.Get("next_end"))
	if err := db.QueryRow(ctx, text, pgx.QueryExecModeCacheDescribe, *firstID(&at)).Scan(&id); err != nil || id == nil {
		return largestWindow, err
	}
	return min(TimeOfID(*id).Sub(at).Abs()+firstWindow, largestWindow), nil
}

// windowAt is the time from <= t < to that a piece covers which begins at a place. The first and the last piece cover all that lies beyond as well; what
// is empty lies beyond the end.
func windowAt(at time.Time, window time.Duration, first, last time.Time, descending bool) (from, to time.Time) {
	if descending {
		if from, to = at.Add(-window), at.Add(time.Microsecond); at.After(last) {
			from, to = last.Add(-clockSkew-window), farFuture
		}
		if from.Before(first) {
			from = farPast
		}
		if !at.After(farPast) {
			to = farPast
		}
		return from, to
	}
	if from, to = at, at.Add(window); at.Before(first) {
		from, to = farPast, first.Add(clockSkew+window)
	}
	if to.After(last) {
		to = farFuture
	}
	return from, to
}
