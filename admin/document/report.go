package document

import (
	"encoding/json"
	"time"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
)

// AuditEntry says who changed what.
type AuditEntry struct {
	ID     int64           `json:"id"`
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"`
	Token  *AuditToken     `json:"token" doc:"the API token that the actor used; null: none"`
	Role   string          `json:"role" doc:"of the database"`
	Action string          `json:"action"`
	Target string          `json:"target"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// AuditToken is an API token.
type AuditToken struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// NewAuditEntries shows entries of the audit.
func NewAuditEntries(entries []jobs.AuditEntry) []AuditEntry {
	list := make([]AuditEntry, len(entries))
	for i, e := range entries {
		list[i] = AuditEntry{e.ID, e.At.UTC(), e.Actor, nil, e.Role, e.Action, e.Target, e.Before, e.After}
		if e.Token.ID != 0 {
			list[i].Token = &AuditToken{e.Token.ID, e.Token.Name}
		}
	}
	return list
}

// Executor is a process that works jobs, or did lately.
type Executor struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name"`
	Host      string     `json:"host"`
	PID       int        `json:"pid"`
	State     string     `json:"state" doc:"alive, silent, stopped or dead"`
	StartedAt time.Time  `json:"started_at"`
	BeatAt    time.Time  `json:"beat_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Slots     int        `json:"slots"`
	Running   int        `json:"running"`
	Leased    int        `json:"leased"`
	Queues    []string   `json:"queues"`
	Kinds     []string   `json:"kinds"`
}

// NewExecutors shows processes.
func NewExecutors(executors []jobs.Executor) []Executor {
	list := make([]Executor, len(executors))
	for i, e := range executors {
		list[i] = Executor{
			e.ID, e.Name, e.Host, e.PID, e.State, e.StartedAt.UTC(), e.BeatAt.UTC(), UTC(e.EndedAt), e.Slots, running(e),
			e.Leased, Texts(e.Queues), Texts(e.Kinds),
		}
	}
	return list
}

// running is how many jobs a process runs: one that has ended does not run those it last told of.
func running(e jobs.Executor) int {
	if e.EndedAt != nil {
		return 0
	}
	return e.Running
}

// Partition is a partition of jobs, attempts, logs or ticks.
type Partition struct {
	Name  string     `json:"name"`
	Table string     `json:"table"`
	State string     `json:"state" doc:"old, closed, open, ahead or rest"`
	Start *time.Time `json:"start"`
	End   *time.Time `json:"end"`
	Rows  int64      `json:"rows" doc:"the planner's estimate; -1: none yet"`
	Bytes int64      `json:"bytes"`
}

// NewPartitions shows partitions.
func NewPartitions(all []schema.Partition) []Partition {
	list := make([]Partition, len(all))
	for i, p := range all {
		list[i] = Partition{Name: p.Name, Table: p.Parent, State: string(p.State), Rows: p.Rows, Bytes: p.Bytes}
		if !p.Start.IsZero() {
			list[i].Start = UTC(&p.Start)
		}
		if !p.End.IsZero() {
			list[i].End = UTC(&p.End)
		}
	}
	return list
}

// Maintenance is what a pass over the partitions did.
type Maintenance struct {
	Busy      bool           `json:"busy" doc:"another process was at it, so this one did nothing"`
	Created   []string       `json:"created"`
	Closed    []string       `json:"closed"`
	Dropped   []string       `json:"dropped"`
	Kept      []string       `json:"kept" doc:"past their retention, with too many jobs that live on"`
	Survivors int            `json:"survivors"`
	Deleted   map[string]int `json:"deleted" doc:"rows deleted one by one, by table"`
	Postponed []string       `json:"postponed"`
	Orphans   []string       `json:"orphans"`
	Ahead     map[string]int `json:"ahead" doc:"partitions made ahead, by table"`
}

// NewMaintenance shows a pass.
func NewMaintenance(r schema.Report) Maintenance {
	m := Maintenance{
		Busy: r.Busy, Created: Texts(r.Created), Closed: Texts(r.Closed), Dropped: Texts(r.Dropped), Kept: Texts(r.Kept),
		Survivors: r.Survivors, Deleted: r.Deleted, Postponed: []string{}, Orphans: Texts(r.Orphans), Ahead: map[string]int{},
	}
	for _, p := range r.Postponed {
		m.Postponed = append(m.Postponed, p.String())
	}
	for _, ahead := range r.Ahead {
		m.Ahead[ahead.Table] = ahead.Partitions
	}
	return m
}
