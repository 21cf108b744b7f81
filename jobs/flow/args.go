package flow

import (
	"encoding/json"
	"fmt"
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

// keyArgs is the key of a node's config that holds the args of a job kind as JSON.
const keyArgs = "args"

// argsOf makes the args of a node's job; values are its parameters, resolved.
func (c *Client) argsOf(l *loaded, n int, values map[string]string) (river.JobArgs, error) {
	return kindArgs(l.machine.Spec(n), values)
}

// kindArgs are the args of a job kind: what the node's config says under "args", or an object of the keys of its config.
func kindArgs(spec *graph.Node, values map[string]string) (river.JobArgs, error) {
	if _, given := spec.Config[keyArgs]; given {
		text := values[keyArgs]
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("args of kind %q are no JSON once their parameters are resolved: %s", spec.Type, clip(text))
		}
		return rawArgs{spec.Type, json.RawMessage(text)}, nil
	}
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

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}

// outputsOf are a node's outputs from its job's output: a JSON object, or nothing.
func outputsOf(spec *graph.Node, output []byte) (map[string]string, error) {
	if len(output) == 0 || output[0] != '{' {
		return nil, nil
	}
	return param.ParseOutputs(output)
}
