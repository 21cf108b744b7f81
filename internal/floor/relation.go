package floor

import (
	"context"
	"embed"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

//go:embed sql/*.sql
var files embed.FS

// Relation is a table with a floor.
type Relation string

// The tables with a floor.
const (
	Ready     Relation = "job_ready"     // by seq
	Scheduled Relation = "job_scheduled" // by wake time, in microseconds since the epoch
	Schedules Relation = "schedule_due"  // likewise
	Reports   Relation = "flow_report"   // by id
)

// single tells whether the relation has one key only. What was taken from it has to be told (Marker.Moved).
func (r Relation) single() bool { return r != Ready }

// DB is what a statement runs on: a pool or a connection outside a transaction. In a transaction of the caller's own the marks
// would rest on rows that it deleted and may yet bring back by rolling back.
type DB interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// statements are one relation's statements in one schema.
type statements struct {
	relation                               Relation
	note, holders, publish, refresh, below string
}

func load(schema string, relation Relation) statements {
	set := sqlfile.Load(files, "sql", schema)
	own := func(name string) string { return set.Get(name + "_" + string(relation)) }
	return statements{
		relation: relation, publish: set.Get("publish"),
		note: own("note"), holders: own("holders"), refresh: own("refresh"), below: own("below"),
	}
}
