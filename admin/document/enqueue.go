package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/command"
)

// NewJobSpec is a job to enqueue: a line of a file of jobs, or the body of a request.
type NewJobSpec struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args,omitempty" doc:"any JSON; as a rule an object (default {})"`
	Queue       string          `json:"queue,omitempty" doc:"default: default"`
	Priority    *int            `json:"priority,omitempty" doc:"1 (first) to 4 (default 1)"`
	At          *time.Time      `json:"at,omitempty" doc:"when to run (default: now)"`
	Tags        []string        `json:"tags,omitempty" nullable:"false"`
	MaxAttempts *int            `json:"max_attempts,omitempty" doc:"attempts before it becomes a dead letter (default 25)"`
	Metadata    json.RawMessage `json:"metadata,omitempty" doc:"an object"`
	UniqueKey   string          `json:"unique_key,omitempty" doc:"skip if a job of this kind and key is there"`
	Pending     bool            `json:"pending,omitempty" doc:"do not run it until a retry releases it"`
}

// Params are what is to be inserted, or what is wrong with it.
func (s NewJobSpec) Params() (river.InsertManyParams, error) {
	var none river.InsertManyParams
	if s.Kind == "" {
		return none, errors.New(`kind is missing: want {"kind":"...","args":{...}}`)
	}
	if err := CheckBuiltIn(s.Kind, s.Args); err != nil {
		return none, err
	}
	if err := jobs.CheckMetadata(s.Metadata); err != nil {
		return none, err
	}
	opts := &river.InsertOpts{Queue: s.Queue, Tags: s.Tags, Metadata: s.Metadata, Pending: s.Pending}
	if s.Priority != nil {
		if opts.Priority = *s.Priority; opts.Priority == 0 {
			return none, errors.New("priority is 0, want 1 (first) to 4")
		}
	}
	if s.MaxAttempts != nil {
		if opts.MaxAttempts = *s.MaxAttempts; opts.MaxAttempts == 0 {
			return none, errors.New("max_attempts is 0, want 1 or more")
		}
	}
	if s.At != nil {
		opts.ScheduledAt = *s.At
	}
	if bytes.Equal(opts.Metadata, []byte("null")) {
		opts.Metadata = nil
	}
	return river.InsertManyParams{Args: jobs.RawArgs{JobKind: s.Kind, JSON: s.Args, UniqueKey: s.UniqueKey}, InsertOpts: opts}, nil
}

// CheckBuiltIn refuses args that the worker of a built-in kind would refuse. Other kinds are their workers' business.
func CheckBuiltIn(kind string, args []byte) error {
	if kind != command.Kind {
		return nil
	}
	if len(args) == 0 {
		args = []byte("{}")
	}
	_, err := command.Parse(args)
	return err
}
