package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

// jobLine is a line of a file of jobs.
type jobLine struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args"`
	Queue       string          `json:"queue"`
	Priority    *int            `json:"priority"`
	At          *time.Time      `json:"at"`
	Tags        []string        `json:"tags"`
	MaxAttempts *int            `json:"max_attempts"`
	Metadata    json.RawMessage `json:"metadata"`
	UniqueKey   string          `json:"unique_key"`
	Pending     bool            `json:"pending"`
}

var lineFields = []string{"kind", "args", "queue", "priority", "at", "tags", "max_attempts", "metadata", "unique_key", "pending"}

// parseLine reads a line; nil for an empty one.
func parseLine(text []byte) (*river.InsertManyParams, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	var l jobLine
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, lineFault(text, err)
	}
	if d.InputOffset() < int64(len(text)) {
		return nil, errors.New("more than one JSON value; want one object a line")
	}
	if l.Kind == "" {
		return nil, errors.New(`kind is missing: want {"kind":"...","args":{...}}`)
	}
	if err := checkBuiltIn(l.Kind, l.Args); err != nil {
		return nil, err
	}
	opts := &river.InsertOpts{Queue: l.Queue, Tags: l.Tags, Metadata: l.Metadata, Pending: l.Pending}
	if l.Priority != nil {
		if opts.Priority = *l.Priority; opts.Priority == 0 {
			return nil, errors.New("priority is 0, want 1 (first) to 4")
		}
	}
	if l.MaxAttempts != nil {
		if opts.MaxAttempts = *l.MaxAttempts; opts.MaxAttempts == 0 {
			return nil, errors.New("max_attempts is 0, want 1 or more")
		}
	}
	if l.At != nil {
		opts.ScheduledAt = *l.At
	}
	if bytes.Equal(opts.Metadata, []byte("null")) {
		opts.Metadata = nil
	}
	return &river.InsertManyParams{
		Args:       jobs.RawArgs{JobKind: l.Kind, JSON: l.Args, UniqueKey: l.UniqueKey},
		InsertOpts: opts,
	}, nil
}

// lineFault makes a decoder's complaint one for people.
func lineFault(text []byte, err error) error {
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) == nil {
		for name := range fields {
			if !slices.Contains(lineFields, name) {
				return fmt.Errorf("unknown field %q%s", name, suggest(name, lineFields))
			}
		}
	}
	var badTime *time.ParseError
	switch {
	case errors.As(err, &shape) && shape.Field == "":
		return fmt.Errorf("a JSON %s, want an object", shape.Value)
	case errors.As(err, &shape):
		return fmt.Errorf("field %q is a %s, want %s", shape.Field, shape.Value, typeText(shape.Type.String()))
	case errors.As(err, &badTime):
		return fmt.Errorf("field \"at\" is %q, want RFC 3339 as 2026-01-02T15:04:05Z", strings.Trim(badTime.Value, `"`))
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON, at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not a job: %w", err)
}

func typeText(name string) string {
	switch name {
	case "string":
		return "text"
	case "int":
		return "a whole number"
	case "bool":
		return "true or false"
	case "[]string":
		return "a list of texts"
	}
	return name
}
