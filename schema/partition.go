package schema

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// The partitioned tables.
const (
	tableJob     = "job"
	tableAttempt = "job_attempt"
	tableLog     = "job_log"
	tableTick    = "schedule_tick"
)

// partitioned lists them in the order in which partitions are made: job_attempt follows job.
var partitioned = []string{tableJob, tableAttempt, tableLog, tableTick}

// keyColumn is the column a table is partitioned by.
func keyColumn(table string) string {
	switch table {
	case tableAttempt:
		return "job_id"
	case tableTick:
		return "tick"
	}
	return "id"
}

// PartitionState says where a partition is in its life.
type PartitionState string

// A partition is made ahead, becomes open when its time comes, closed when that is over, and is dropped after its retention.
const (
	PartitionOld    PartitionState = "old"    // holds what outlived its partition, and is deleted from row by row
	PartitionClosed PartitionState = "closed" // its time is over: no new ids fall into it
	PartitionOpen   PartitionState = "open"   // ids of now fall into it
	PartitionAhead  PartitionState = "ahead"  // its time has yet to come
	PartitionRest   PartitionState = "rest"   // open-ended: everything later falls into it
)

// Partition is one partition of job, job_attempt, job_log or schedule_tick.
type Partition struct {
	Name   string
	Parent string
	State  PartitionState
	From   int64     // least id; math.MinInt64: everything below To
	To     int64     // first id above; math.MaxInt64: open-ended
	Start  time.Time // of the id From; zero: none
	End    time.Time // of the id To; zero: none
	Rows   int64     // the planner's estimate; -1: none yet
	Bytes  int64     // with indexes and TOAST

	oid uint32
}

// List describes all partitions, by table and bound.
func (k *Keeper) List(ctx context.Context) ([]Partition, error) {
	all, _, err := k.list(ctx, true)
	return all, err
}

// DropAt is when a partition that List told of is dropped as a whole: at its end and its table's retention. One of jobs that must live on in too many numbers stays for
// longer. false: it never is, since it is open-ended, or rows are deleted from it one by one.
func (k *Keeper) DropAt(p Partition) (at time.Time, dropped bool) {
	if p.State == PartitionOld || p.State == PartitionRest {
		return time.Time{}, false
	}
	return p.End.Add(k.Retention(p.Parent)), true
}

// Retention is how long the rows of a partitioned table are kept, by this keeper.
func (k *Keeper) Retention(table string) time.Duration {
	switch table {
	case tableLog:
		return k.config.Retention.Logs
	case tableTick:
		return k.config.Retention.Ticks
	}
	return k.config.Retention.Jobs
}

// list also returns the database's time, in which the states are told.
func (k *Keeper) list(ctx context.Context, sizes bool) ([]Partition, time.Time, error) {
	return listPartitions(ctx, k.pool, k.sql, sizes)
}

func listPartitions(ctx context.Context, db sqlfile.DB, sql *sqlfile.Set, sizes bool) ([]Partition, time.Time, error) {
	var all []Partition
	var now time.Time
	rows, err := db.Query(ctx, sql.Get("partitions"), sizes)
	if err != nil {
		return nil, now, fmt.Errorf("list partitions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var p Partition
		var bound string
		if err := rows.Scan(&p.Parent, &p.Name, &p.oid, &bound, &p.Rows, &p.Bytes, &now); err != nil {
			return nil, now, fmt.Errorf("list partitions: %w", err)
		}
		if p.From, p.To, err = parseBound(bound); err != nil {
			return nil, now, fmt.Errorf("bounds of partition %q: %w", p.Name, err)
		}
		all = append(all, p)
	}
	if err := rows.Err(); err != nil {
		return nil, now, fmt.Errorf("list partitions: %w", err)
	}
	for i := range all {
		all[i].describe(now)
	}
	slices.SortFunc(all, func(a, b Partition) int { return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.From, b.From)) })
	return all, now, nil
}

func (p *Partition) describe(now time.Time) {
	if p.From != math.MinInt64 {
		p.Start = timeOf(p.From)
	}
	if p.To != math.MaxInt64 {
		p.End = timeOf(p.To)
	}
	old := p.Parent + "_old"
	switch id := idOf(now); {
	case p.Name == old || strings.HasPrefix(p.Name, old+"_"):
		p.State = PartitionOld
	case p.To == math.MaxInt64:
		p.State = PartitionRest
	case p.To <= id:
		p.State = PartitionClosed
	case p.From <= id:
		p.State = PartitionOpen
	default:
		p.State = PartitionAhead
	}
}

// of returns the partitions of one table, by bound.
func of(all []Partition, table string) []Partition {
	return slices.DeleteFunc(slices.Clone(all), func(p Partition) bool { return p.Parent != table })
}

var boundText = regexp.MustCompile(`^FOR VALUES FROM \((?:MINVALUE|'(-?\d+)')\) TO \((?:MAXVALUE|'(-?\d+)')\)$`)

// parseBound reads a range as Postgres prints it.
func parseBound(text string) (from, to int64, err error) {
	m := boundText.FindStringSubmatch(text)
	if m == nil {
		return 0, 0, fmt.Errorf("want a range of ids, found %q", text)
	}
	from, to = math.MinInt64, math.MaxInt64
	if m[1] != "" {
		if from, err = strconv.ParseInt(m[1], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	if m[2] != "" {
		if to, err = strconv.ParseInt(m[2], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return from, to, nil
}

// boundSQL is a range as Postgres reads it.
func boundSQL(from, to int64) string {
	low, high := "MINVALUE", "MAXVALUE"
	if from != math.MinInt64 {
		low = fmt.Sprintf("'%d'", from)
	}
	if to != math.MaxInt64 {
		high = fmt.Sprintf("'%d'", to)
	}
	return fmt.Sprintf("FOR VALUES FROM (%s) TO (%s)", low, high)
}

// Ids are times: seconds since epoch in the high bits, a sequence below.
const (
	epoch  = 1704067200 // 2024-01-01 UTC
	idBits = 24
)

func idOf(t time.Time) int64    { return max(t.Unix()-epoch, 0) << idBits }
func timeOf(id int64) time.Time { return time.Unix(id>>idBits+epoch, 0).UTC() }

// nameFrom names a partition after its start.
func nameFrom(table, class string, from int64) string {
	if from == math.MinInt64 {
		return table + "_" + class + "_first"
	}
	return table + "_" + class + "_" + timeOf(from).Format("20060102_150405")
}
