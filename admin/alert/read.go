package alert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/schema"
)

const (
	// maxRuns is how many runs a failure rate is made of at most, those of the newest jobs. With more, tallies of queues are taken.
	maxRuns = 50_000
	// reach is how much older than the window a job may be whose runs count.
	reach = 6 * time.Hour
	// maxNamed is how many subjects of a rule are known at most, the worst.
	maxNamed = 500
	// maxEvents is how many dead letters, missed SLAs or ticks of a window are counted at most.
	maxEvents = 100_000
)

// errUnknown says that nobody here knows what a rule is about, so that all stays as it is.
var errUnknown = errors.New("not known here")

// reader reads how things are.
type reader struct {
	tx     pgx.Tx
	sql    *sqlfile.Set
	now    time.Time // the database's
	queue  string    // of the alerts: what happens there is nobody's subject unless a rule names it
	schema string
	lost   func() (int, bool)
	runs   int // how many a failure rate is made of at most
}

// read finds what is bad by a rule.
func (rd *reader) read(ctx context.Context, r *Rule) (readings, error) {
	since := rd.now.Add(-time.Duration(r.Window))
	switch r.Type {
	case FailureRate:
		return rd.failureRate(ctx, r, since)
	case OldestAge:
		return rd.oldestAge(ctx, r)
	case SLAMissed:
		return rd.events(ctx, r, "sla_missed", since, r.Projects, r.Flows)
	case DeadLetters:
		if r.MoreThan > 0 {
			return rd.manyDead(ctx, r)
		}
		return rd.events(ctx, r, "dead_letters", since, r.Queues, r.Kinds, rd.queue)
	case MissedTicks:
		return rd.missedTicks(ctx, r, since)
	case DeadExecutor:
		return rd.events(ctx, r, "dead_executors", since, r.Queues)
	case Partitions:
		return rd.partitions(ctx, r)
	case Duties:
		return rd.duties(ctx)
	case LostJobs:
		return rd.lostJobs()
	default:
		return readings{}, fmt.Errorf("rule of unknown type %q", r.Type)
	}
}

// row is what the statements answer: a subject, how much of it, and words for people.
type row struct {
	Subject string
	Value   float64
	Text    string
}

func (rd *reader) rows(ctx context.Context, statement string, args ...any) ([]row, error) {
	args = append([]any{pgx.QueryExecModeCacheDescribe}, args...)
	return sqlfile.Rows(ctx, rd.sql, rd.tx, pgx.RowToStructByPos[row], statement, args...)
}

// jobID is the least id that a job made at a time can have.
func jobID(at time.Time) int64 {
	const epoch = 1704067200 // 2024-01-01 UTC
	return max(0, at.Unix()-epoch) << 24
}

func names(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (rd *reader) failureRate(ctx context.Context, r *Rule, since time.Time) (readings, error) {
	least := r.Over
	if r.Until > 0 {
		least = r.Until
	}
	rows, err := rd.rows(ctx, "failure_rate", jobID(since.Add(-reach)), int64(rd.runs), since, names(r.Queues), names(r.Kinds),
		rd.queue, r.By == "kind", int64(r.MinRuns), least, int64(maxNamed+1))
	if err != nil {
		return readings{}, err
	}
	return named(rows, func(v float64) level {
		if v > r.Over {
			return bad
		}
		return between
	}, func(w row) string {
		return fmt.Sprintf("%.0f %% of %s in the last %v failed", math.Floor(w.Value*100), w.Text, r.Window)
	}), nil
}

func (rd *reader) oldestAge(ctx context.Context, r *Rule) (readings, error) {
	least := r.OverAge
	if r.UntilAge > 0 {
		least = r.UntilAge
	}
	rows, err := rd.rows(ctx, "oldest_age", names(r.Queues), rd.queue, time.Duration(least), int64(maxNamed+1))
	if err != nil {
		return readings{}, err
	}
	return named(rows, func(v float64) level {
		if v > time.Duration(r.OverAge).Seconds() {
			return bad
		}
		return between
	}, func(w row) string {
		return fmt.Sprintf("the oldest of %s has waited for %s", w.Text, about(time.Duration(w.Value*float64(time.Second))))
	}), nil
}

// events are those of a window; each is bad.
func (rd *reader) events(ctx context.Context, r *Rule, statement string, since time.Time, filters ...any) (readings, error) {
	args := []any{since}
	for _, f := range filters {
		if list, ok := f.([]string); ok {
			f = names(list)
		}
		args = append(args, f)
	}
	rows, err := rd.rows(ctx, statement, append(args, int64(maxEvents), int64(maxNamed+1))...)
	if err != nil {
		return readings{}, err
	}
	return named(rows, allBad, func(w row) string { return fmt.Sprintf("%s in the last %v", w.Text, r.Window) }), nil
}

func (rd *reader) manyDead(ctx context.Context, r *Rule) (readings, error) {
	rows, err := rd.rows(ctx, "many_dead", int64(r.MoreThan), int64(maxEvents))
	if err != nil {
		return readings{}, err
	}
	return named(rows, allBad, func(w row) string { return fmt.Sprintf("%s, which is more than %d", w.Text, r.MoreThan) }), nil
}

func (rd *reader) missedTicks(ctx context.Context, r *Rule, since time.Time) (readings, error) {
	missed, err := rd.events(ctx, r, "missed_ticks", since, r.Schedules)
	if err != nil {
		return missed, err
	}
	late, err := rd.rows(ctx, "late_ticks", rd.now.Add(-time.Duration(r.Late)), names(r.Schedules), int64(maxEvents), int64(maxNamed+1))
	if err != nil {
		return missed, err
	}
	found := named(late, allBad, func(w row) string { return w.Text })
	for _, f := range found.list {
		i := slices.IndexFunc(missed.list, func(m reading) bool { return m.subject == f.subject })
		if i < 0 {
			missed.list = append(missed.list, f)
			continue
		}
		missed.list[i].text += "; " + f.text
	}
	missed.tooMany = missed.tooMany || found.tooMany
	return missed, nil
}

func (rd *reader) partitions(ctx context.Context, r *Rule) (readings, error) {
	ahead, err := schema.ReadAhead(ctx, rd.tx, rd.schema)
	if err != nil {
		return readings{}, err
	}
	var found readings
	for _, a := range ahead {
		days := a.Until.Hours() / 24
		if days >= float64(r.Days) {
			continue
		}
		text := fmt.Sprintf("partitions are made for %s more, want %s: is maintenance held up? (pelton partitions)", about(max(0, a.Until)), quantity.Of(r.Days, "day"))
		if a.Until <= 0 {
			text = "rows go into the open-ended partition, since no others were made (pelton partitions)"
		}
		found.list = append(found.list, reading{subject: a.Table, value: days, text: text, level: bad})
	}
	return found, nil
}

func (rd *reader) duties(ctx context.Context) (readings, error) {
	rows, err := rd.rows(ctx, "duties", int64(maxNamed+1))
	if err != nil {
		return readings{}, err
	}
	return named(rows, allBad, func(w row) string { return w.Text }), nil
}

func (rd *reader) lostJobs() (readings, error) {
	if rd.lost == nil {
		return readings{}, errUnknown
	}
	n, known := rd.lost()
	if !known {
		return readings{}, errUnknown
	}
	if n == 0 {
		return readings{}, nil
	}
	text := quantity.Say(n, "1 job is", "%d jobs are") + " in no place, which is a fault of Pelton's: SELECT * FROM lost_jobs()"
	return readings{list: []reading{{subject: everything, value: float64(n), text: text, level: bad}}}, nil
}

func allBad(float64) level { return bad }

// named makes readings of rows, of which one more than the most says that there are too many.
func named(rows []row, judge func(float64) level, text func(row) string) readings {
	found := readings{tooMany: len(rows) > maxNamed}
	for _, w := range rows[:min(len(rows), maxNamed)] {
		found.list = append(found.list, reading{subject: w.Subject, value: w.Value, text: text(w), level: judge(w.Value)})
	}
	return found
}
