package page

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/peltonq/pelton/schema"
)

var partitionsRoom = room{Name: "Partitions", Path: "/partitions", Mount: func(p *Page) {
	p.get("/partitions", viewer, p.showPartitions)
	p.get("/partitions/maintain", admin, p.askMaintain)
	p.post("/partitions/maintain", admin, p.maintain)
}}

const (
	// aheadLow is how far partitions should be made ahead at least; less is a warning.
	aheadLow = 7 * 24 * time.Hour
	// dropLate is how long after its time a partition may be there without a warning.
	dropLate = 24 * time.Hour
	// maintainTime is how long maintenance may take that somebody waits for.
	maintainTime = 2 * time.Minute
)

// partitionLine is a partition as the page shows it.
type partitionLine struct {
	schema.Partition

	DropAt *time.Time // nil: it is not dropped as a whole
	Late   bool       // it should have been
}

// partitionTable is a table with its partitions.
type partitionTable struct {
	Name     string
	Keep     time.Duration // retention
	Until    time.Duration // ids fall into partitions made ahead for so long; math.MaxInt64: no end
	Rows     int64         // by the planner's estimate, of those that have one; -1: none has
	Bytes    int64
	Lines    []partitionLine // in use, the oldest first
	Ahead    []partitionLine // their time has yet to come
	Warnings []string
}

type partitionsPage struct {
	Tables []*partitionTable
}

// Words says how far ahead partitions are made.
func (t *partitionTable) Words() string {
	switch {
	case t.Until == math.MaxInt64:
		return "there is no end"
	case t.Until < 0:
		return "rows go into the open-ended one"
	}
	return "for " + duration(t.Until)
}

func (p *Page) showPartitions(w http.ResponseWriter, r *http.Request) error {
	keeper, err := p.config.Jobs.Keeper()
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	all, err := keeper.List(ctx)
	if err != nil {
		return err
	}
	ahead, err := keeper.Ahead(ctx)
	if err != nil {
		return err
	}
	return p.render(w, r, "partitions", "Partitions", partitionsOf(keeper, all, ahead, time.Now()))
}

func partitionsOf(keeper *schema.Keeper, all []schema.Partition, ahead []schema.Ahead, now time.Time) partitionsPage {
	shown, tables := partitionsPage{}, map[string]*partitionTable{}
	for _, a := range ahead {
		t := &partitionTable{Name: a.Table, Keep: keeper.Retention(a.Table), Until: a.Until, Rows: -1}
		if a.Until < 0 {
			t.warn("Rows go into the open-ended partition, since no others were made in time. It is given an end by the next maintenance.")
		} else if a.Until < aheadLow {
			t.warn("Partitions are made for %s more: some server with duties should have made more of them.", duration(a.Until))
		}
		tables[a.Table] = t
		shown.Tables = append(shown.Tables, t)
	}
	for _, one := range all {
		t := tables[one.Parent]
		if t == nil {
			continue
		}
		line := partitionLine{Partition: one}
		if at, dropped := keeper.DropAt(one); dropped {
			line.DropAt, line.Late = &at, now.Sub(at) > dropLate
		}
		if line.Late {
			t.warn("%s should have been dropped at %s: too many of its jobs must be kept, somebody holds a lock, or no server keeps the partitions.",
				one.Name, line.DropAt.Format("2006-01-02 15:04"))
		}
		if one.Rows >= 0 {
			t.Rows = max(0, t.Rows) + one.Rows
		}
		t.Bytes += one.Bytes
		if one.State == schema.PartitionAhead {
			t.Ahead = append(t.Ahead, line)
		} else {
			t.Lines = append(t.Lines, line)
		}
	}
	return shown
}

func (t *partitionTable) warn(format string, args ...any) {
	t.Warnings = append(t.Warnings, fmt.Sprintf(format, args...))
}

func (p *Page) askMaintain(w http.ResponseWriter, r *http.Request) error {
	keeper, err := p.config.Jobs.Keeper()
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	all, err := keeper.List(ctx)
	if err != nil {
		return err
	}
	due := 0
	for _, one := range all {
		if at, dropped := keeper.DropAt(one); dropped && time.Now().After(at) {
			due++
		}
	}
	return p.confirm(w, r, "Maintain the partitions now?", confirmation{
		Text: fmt.Sprintf("Partitions are made ahead, and those past their retention are dropped with what is in them: %s now. Logs, dead letters, the audit and ticks "+
			"past theirs are deleted too. A server with duties does this by itself.", plural(due, "1 partition is", "%d partitions are")),
		Action: "/partitions/maintain", Button: "Maintain now", Back: "/partitions",
	})
}

func (p *Page) maintain(w http.ResponseWriter, r *http.Request) error {
	keeper, err := p.config.Jobs.Keeper()
	if err != nil {
		return err
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maintainTime + time.Minute)) // without it the server's holds
	ctx, cancel := context.WithTimeout(r.Context(), maintainTime)
	defer cancel()
	report, err := keeper.Maintain(ctx)
	if err = errors.Join(err, p.config.Jobs.AuditMaintenance(ctx, report)); errors.Is(err, schema.ErrNotOwner) {
		return refused(err)
	} else if err != nil {
		return err
	}
	return p.done(w, r, "/partitions", "%s", maintained(report))
}

// maintained says what maintenance did.
func maintained(report schema.Report) string {
	if report.Busy {
		return "Another process is at it; nothing was done."
	}
	deleted := 0
	for _, n := range report.Deleted {
		deleted += n
	}
	text := []string{fmt.Sprintf("%s made ahead, %d closed, %d dropped; %s deleted one by one.", plural(len(report.Created), "1 partition was", "%d partitions were"), len(report.Closed), len(report.Dropped),
		plural(deleted, "1 row was", "%d rows were"))}
	if report.Survivors > 0 {
		text = append(text, plural(report.Survivors, "1 job of those dropped lives on.", "%d jobs of those dropped live on."))
	}
	if len(report.Kept) > 0 {
		text = append(text, "Kept, since too many of their jobs live on: "+strings.Join(report.Kept, ", ")+".")
	}
	if len(report.Orphans) > 0 {
		text = append(text, "Attached to nothing, with rows in them: "+strings.Join(report.Orphans, ", ")+".")
	}
	for _, one := range report.Postponed {
		text = append(text, "Postponed: "+one.String()+".")
	}
	return strings.Join(text, " ")
}
