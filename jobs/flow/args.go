package flow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// rawArgs are the args of any kind.
type rawArgs struct {
	kind string
	data json.RawMessage
}

// Kind implements river.JobArgs.
func (a rawArgs) Kind() string { return a.kind }

// MarshalJSON implements json.Marshaler.
func (a rawArgs) MarshalJSON() ([]byte, error) { return a.data, nil }

// argsOf resolves a node's parameters and makes the args of its job.
func (c *Client) argsOf(l *loaded, n int, scopes param.Scopes) (river.JobArgs, error) {
	spec := l.machine.Spec(n)
	fill := func(values map[string]string) (river.JobArgs, error) { return configArgs(spec, values) }
	if len(spec.Args) > 0 {
		scope, own, err := argsScope(spec)
		if err != nil {
			return nil, err
		}
		scopes, fill = append(scopes, scope), own
	}
	values, err := param.Resolve(scopes)
	if err != nil {
		return nil, err
	}
	return fill(values)
}

// configArgs are the args of a job kind whose node has none of its own: an object of its config.
func configArgs(spec *graph.Node, values map[string]string) (river.JobArgs, error) {
	own := make(map[string]string, len(spec.Config))
	for key := range spec.Config {
		own[key] = values[key]
	}
	data, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("encode args of kind %q: %w", spec.Type, err)
	}
	return rawArgs{spec.Type, data}, nil
}

// argsScope makes parameters of the texts in a node's own args, so that they are resolved with the others; fill puts them back.
func argsScope(spec *graph.Node) (scope param.Scope, fill func(values map[string]string) (river.JobArgs, error), err error) {
	scope = param.Scope{From: "args", Values: map[string]string{}}
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(spec.Args))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return scope, nil, fmt.Errorf("args of kind %q: %w", spec.Type, err)
	}
	eachText(decoded, func(text string) string {
		if strings.Contains(text, "$") {
			scope.Values[argName(len(scope.Values))] = text
		}
		return text
	})
	if len(scope.Values) == 0 { // byte for byte what was given
		return scope, func(map[string]string) (river.JobArgs, error) { return rawArgs{spec.Type, spec.Args}, nil }, nil
	}
	return scope, func(values map[string]string) (river.JobArgs, error) {
		n := 0
		data, err := json.Marshal(eachText(decoded, func(text string) string {
			if strings.Contains(text, "$") {
				text = values[argName(n)]
				n++
			}
			return text
		}))
		if err != nil {
			return nil, fmt.Errorf("encode args of kind %q: %w", spec.Type, err)
		}
		return rawArgs{spec.Type, data}, nil
	}, nil
}

func argName(n int) string { return "pelton.args." + strconv.Itoa(n) }

// eachText puts every text of a JSON value through change, those of objects by sorted keys.
func eachText(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = eachText(v[i], change)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			object[key] = eachText(v[key], change)
		}
		return object
	}
	return value
}

// outputsOf are a node's outputs from its job's output: a JSON object, or nothing.
func outputsOf(spec *graph.Node, output []byte) (map[string]string, error) {
	if len(output) == 0 || output[0] != '{' {
		return nil, nil
	}
	return param.ParseOutputs(output)
}
