package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/nodecmd"
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
func (l *loaded) argsOf(n int) (river.JobArgs, error) {
	spec, scopes := l.machine.Spec(n), l.scopes(n)
	if runsPrograms(spec) {
		return l.commandArgs(n, scopes)
	}
	fill := func(values map[string]string) (river.JobArgs, error) { return l.kindArgs(n, values) }
	if len(spec.Args) > 0 {
		scope, own, err := argsScope(spec, l.nodeParams(n))
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

// runsPrograms tells whether a node's job runs programs; one of kind command that was built in code is a job like others.
func runsPrograms(spec *graph.Node) bool {
	return len(spec.Args) == 0 && (spec.Type == graph.TypeCommand || spec.Type == graph.TypeJavaProcess || spec.Template != "")
}

// keyDir is the parameter that says where programs run.
const keyDir = "working.dir"

// keyMapped is the parameter that stands for the command of a mapped type while parameters are resolved.
const keyMapped = "pelton.command"

// commandArgs are the args of the job of a node that runs programs.
func (l *loaded) commandArgs(n int, scopes param.Scopes) (river.JobArgs, error) {
	spec := l.machine.Spec(n)
	if spec.Template != "" {
		scopes = append(scopes, param.Scope{
			From: "the command of type " + spec.Type, Values: map[string]string{keyMapped: spec.Template}, Secrets: true,
		})
	}
	values, mark, err := param.ResolveMarked(scopes)
	if err != nil {
		return nil, err
	}
	if mark.In(values[keyDir]) {
		return nil, errors.New(keyDir + " holds a secret, which it must not: it is told in errors")
	}
	args := nodecmd.Args{
		Run: l.run.ID, Node: l.machine.Path(n), Version: int64(l.run.Version), Type: spec.Type,
		Dir: values[keyDir], Properties: values, Files: l.run.VersionID, Secrets: mark,
	}
	switch {
	case spec.Template != "":
		args.Commands = []string{values[keyMapped]}
		delete(values, keyMapped)
	case spec.Type == graph.TypeCommand:
		args.Commands = commandsOf(values)
	default:
		if faults := draft.Heaps(values, l.heaps.xms, l.heaps.xmx); len(faults) > 0 {
			return nil, errors.New(strings.Join(slices.Sorted(maps.Values(faults)), "; "))
		}
	}
	return args, nil
}

// commandsOf are the commands of a node in turn: command, command.1, command.2, ... up to the first that is missing.
func commandsOf(values map[string]string) (list []string) {
	if first, found := values["command"]; found {
		list = append(list, first)
	}
	for n := 1; ; n++ {
		next, found := values["command."+strconv.Itoa(n)]
		if !found {
			return list
		}
		list = append(list, next)
	}
}

// nodeParams are the names of the parameters that the run sets for a node alone.
func (l *loaded) nodeParams(n int) map[string]bool {
	names := map[string]bool{}
	for _, path := range []string{l.machine.Spec(n).Path, l.machine.Path(n)} {
		for name := range l.options.NodeParams[path] {
			names[name] = true
		}
	}
	return names
}

// kindTest is the job kind of Azkaban's own examples.
const kindTest = "test"

// kindArgs are the args of a job kind whose node has none of its own: an object of the node's parameters, but for the engine's own, which are
// where something refers to them. Code knows its kinds, and their args are what it said of the node, and what the run says.
func (l *loaded) kindArgs(n int, values map[string]string) (river.JobArgs, error) {
	spec, args := l.machine.Spec(n), map[string]string{}
	said := l.nodeParams(n)
	for key := range spec.Config {
		said[key] = true
	}
	for name := range said {
		if _, resolved := values[name]; !resolved { // it was left out, and that is why
			return nil, fmt.Errorf("%s holds a secret, which the args of a job must not: they are stored; use a node that runs a program", name)
		}
	}
	all := l.run.Format != graph.FormatCode || spec.Type == kindTest
	for name, value := range values {
		if said[name] || all && !param.Reserved(name) {
			args[name] = value
		}
	}
	data, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode args of kind %q: %w", spec.Type, err)
	}
	return rawArgs{spec.Type, data}, nil
}

// argsScope makes parameters of the texts in a node's own args, so that they are resolved with the others; fill puts them back, and adds
// those that the run sets for the node, where the args do not have them.
func argsScope(spec *graph.Node, more map[string]bool) (scope param.Scope, fill func(values map[string]string) (river.JobArgs, error), err error) {
	scope = param.Scope{From: "args", Values: map[string]string{}, Secrets: true}
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(spec.Args))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return scope, nil, fmt.Errorf("args of kind %q: %w", spec.Type, err)
	}
	object, isObject := decoded.(map[string]any)
	for name := range more {
		if _, given := object[name]; given || !isObject {
			delete(more, name)
		}
	}
	eachText(decoded, func(text string) string {
		if strings.Contains(text, "$") {
			scope.Values[argName(len(scope.Values))] = text
		}
		return text
	})
	if len(scope.Values)+len(more) == 0 { // byte for byte what was given
		return scope, func(map[string]string) (river.JobArgs, error) { return rawArgs{spec.Type, spec.Args}, nil }, nil
	}
	return scope, func(values map[string]string) (river.JobArgs, error) {
		for name := range scope.Values {
			if _, resolved := values[name]; !resolved {
				return nil, fmt.Errorf("the args of kind %q hold a secret, which they must not: they are stored; use a node that runs a program", spec.Type)
			}
		}
		n := 0
		filled := eachText(decoded, func(text string) string {
			if strings.Contains(text, "$") {
				text = values[argName(n)]
				n++
			}
			return text
		})
		if object, is := filled.(map[string]any); is {
			for name := range more {
				object[name] = values[name]
			}
		}
		data, err := json.Marshal(filled)
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
	if runsPrograms(spec) {
		var recorded struct {
			Outputs map[string]string `json:"outputs"`
		}
		if err := json.Unmarshal(output, &recorded); err != nil {
			return nil, fmt.Errorf("output of a command: %w", err)
		}
		return recorded.Outputs, nil
	}
	return param.ParseOutputs(output)
}
