package document

import (
	"encoding/json"
	"time"

	"github.com/peltonq/pelton/jobs"
)

// Dead is a dead letter.
type Dead struct {
	JobID       int64              `json:"job_id"`
	Kind        string             `json:"kind"`
	Queue       string             `json:"queue"`
	Reason      string             `json:"reason" doc:"exhausted, poison or conflict"`
	DiedAt      time.Time          `json:"died_at"`
	CreatedAt   time.Time          `json:"created_at"`
	ScheduledAt *time.Time         `json:"scheduled_at"`
	Priority    int                `json:"priority"`
	Attempt     int                `json:"attempt"`
	MaxAttempts int                `json:"max_attempts"`
	Error       string             `json:"error"`
	Args        json.RawMessage    `json:"args"`
	Metadata    json.RawMessage    `json:"metadata"`
	Tags        []string           `json:"tags"`
	Attempts    []jobs.DeadAttempt `json:"attempts"`
}

// NewDead shows a dead letter.
func NewDead(l *jobs.DeadLetter) Dead {
	return Dead{
		l.JobID, l.Kind, l.Queue, l.Reason, l.DiedAt.UTC(), l.CreatedAt.UTC(), UTC(l.ScheduledAt), l.Priority, l.Attempt,
		l.MaxAttempts, l.Error, l.EncodedArgs, l.Metadata, Texts(l.Tags), append([]jobs.DeadAttempt{}, l.Attempts...),
	}
}

// What became of a dead letter.
const (
	Redriven  = "redriven"
	Discarded = "discarded"
)

// DeadChanged is what became of one dead letter.
type DeadChanged struct {
	JobID    int64  `json:"job_id"`
	Done     string `json:"done" doc:"redriven or discarded"`
	NewJobID int64  `json:"new_job_id,omitempty" doc:"of a redriven one"`
}

// NewRedriven shows the dead letters that were redriven.
func NewRedriven(made []jobs.Redriven) []DeadChanged {
	changed := make([]DeadChanged, len(made))
	for i, m := range made {
		changed[i] = DeadChanged{m.DeadID, Redriven, m.JobID}
	}
	return changed
}

// NewDiscarded shows the dead letters that were discarded.
func NewDiscarded(ids []int64) []DeadChanged {
	changed := make([]DeadChanged, len(ids))
	for i, id := range ids {
		changed[i] = DeadChanged{JobID: id, Done: Discarded}
	}
	return changed
}
