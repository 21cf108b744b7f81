package periodic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
)

// What a run is told of its tick: a key of a job's metadata, and parameters of a flow.
const (
	metadataKey = "pelton:schedule"
	paramName   = "schedule.name"
	paramTime   = "schedule.time"
)

// job is a job to enqueue.
type job struct {
	args river.JobArgs
	opts *river.InsertOpts
}

// Origin is what a job's metadata say of its tick.
type Origin struct {
	Name     string    `json:"name"`               // of the schedule
	Tick     time.Time `json:"tick"`               // the time that the schedule names, however late the job was enqueued
	Backfill int64     `json:"backfill,omitempty"` // that asked for the tick; 0: none
}

// TickOf tells which schedule enqueued a job, and for which tick: the time that the schedule names, however late the job was enqueued. A job that
// none has enqueued: false.
func TickOf(row *rivertype.JobRow) (name string, tick time.Time, ok bool) {
	o, ok := OriginOf(row.Metadata)
	return o.Name, o.Tick, ok
}

var quotedKey = []byte(`"` + metadataKey + `"`)

// OriginOf reads a job's metadata: which schedule enqueued it, for which tick. Quick for a job that none has enqueued: false.
func OriginOf(metadata []byte) (Origin, bool) {
	if !bytes.Contains(metadata, quotedKey) {
		return Origin{}, false
	}
	var known struct {
		Origin *Origin `json:"pelton:schedule"`
	}
	if json.Unmarshal(metadata, &known) != nil || known.Origin == nil {
		return Origin{}, false
	}
	return *known.Origin, true
}

// jobAt is the job of a tick, of a backfill if that is not 0; nil: there is nothing to enqueue.
func (c *compiled) jobAt(at time.Time, backfill int64) (*job, error) {
	if c.code != nil && c.code.target != nil {
		j, err := c.codedJob(at)
		if err != nil || j == nil {
			return nil, err
		}
		opts := river.InsertOpts{}
		if j.opts != nil {
			opts = *j.opts
		}
		opts.Metadata, err = c.metadata(opts.Metadata, at, backfill)
		return &job{j.args, &opts}, err
	}
	t := c.schedule.Job
	metadata, err := c.metadata(t.Metadata, at, backfill)
	return &job{
		jobs.RawArgs{JobKind: t.Kind, JSON: t.Args},
		&river.InsertOpts{Queue: t.Queue, Priority: t.Priority, MaxAttempts: t.MaxAttempts, Tags: t.Tags, Metadata: metadata},
	}, err
}

// codedJob calls the user's function, and turns a panic into an error.
func (c *compiled) codedJob(at time.Time) (j *job, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the function that makes the job panicked: %v", p)
		}
	}()
	return c.code.target(at)
}

// metadata adds the tick to a JSON object.
func (c *compiled) metadata(own []byte, at time.Time, backfill int64) ([]byte, error) {
	keys := map[string]any{}
	if len(own) > 0 {
		var given map[string]json.RawMessage
		if err := json.Unmarshal(own, &given); err != nil {
			if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
				return nil, fmt.Errorf("job: metadata are not JSON: %w", syntax)
			}
			return nil, errors.New("job: metadata are not a JSON object")
		}
		for key, value := range given {
			keys[key] = value
		}
	}
	keys[metadataKey] = Origin{c.name, at.UTC(), backfill}
	return json.Marshal(keys)
}

// runAt is the run of a flow for a tick.
func (c *compiled) runAt(at time.Time) flow.RunParams {
	t := c.schedule.Flow
	p := flow.RunParams{Project: t.Project, Flow: t.Flow, Version: t.Version, Options: t.Options}
	p.Options.Params = maps.Clone(t.Options.Params)
	if p.Options.Params == nil {
		p.Options.Params = map[string]string{}
	}
	p.Options.Params[paramName] = c.name
	p.Options.Params[paramTime] = at.In(c.zone).Format(time.RFC3339Nano)
	return p
}
