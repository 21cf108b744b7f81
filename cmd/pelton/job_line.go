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

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/suggest"
)

var lineFields = []string{"kind", "args", "queue", "priority", "at", "tags", "max_attempts", "metadata", "unique_key", "pending"}

// parseLine reads a line; nil for an empty one.
func parseLine(text []byte) (*river.InsertManyParams, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, nil
	}
	var l document.NewJobSpec
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, lineFault(text, err)
	}
	if d.InputOffset() < int64(len(text)) {
		return nil, errors.New("more than one JSON value; want one object a line")
	}
	params, err := l.Params()
	if err != nil {
		return nil, err
	}
	return &params, nil
}

// lineFault makes a decoder's complaint one for people.
func lineFault(text []byte, err error) error {
	var shape *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) == nil {
		for name := range fields {
			if !slices.Contains(lineFields, name) {
				return fmt.Errorf("unknown field %q%s", name, suggest.Near(name, lineFields))
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
