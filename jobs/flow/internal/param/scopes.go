package param

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Scope is one place that parameters come from.
type Scope struct {
	From   string // for people: "the run", "outputs of b"
	Values map[string]string
	Data   bool // Values are data: nothing is put in where they look as if they referred to something, and nothing calculated

	// Secrets has Values refer to secrets: of a project's own configs and of the installation. What who starts a run says, and what programs put out,
	// must not.
	Secrets bool

	Empty bool // they are lists that are empty, and so nobody knows their names: what no scope has is an empty list
}

// Scopes are the places that a node's parameters come from, from the weakest to the strongest.
type Scopes []Scope

// Merge returns each parameter as its strongest scope has it, not resolved.
func (s Scopes) Merge() map[string]string {
	merged := map[string]string{}
	for _, scope := range s {
		maps.Copy(merged, scope.Values)
	}
	return merged
}

// From returns the strongest scope that has a parameter; "" if none has it.
func (s Scopes) From(name string) string {
	for _, scope := range slices.Backward(s) {
		if _, found := scope.Values[name]; found {
			return scope.From
		}
	}
	return ""
}

// Run is what a run brings for its nodes.
type Run struct {
	Global map[string]string            // of the installation
	Params map[string]string            // of the whole run
	Nodes  map[string]map[string]string // for the node of exactly this path
}

// Item is what an instance of a for_each is for.
type Item struct {
	Index int
	Value string
}

// Node says which node's parameters are asked for, and what is known when it starts.
type Node struct {
	Number  int                              // in the flow; of an instance: its template's
	Item    *Item                            // of an instance
	Outputs func(node int) map[string]string // of a node that has ended
	Empty   func(node int) bool              // it has ended, and its outputs are lists that are empty; nil: none are
	Runtime map[string]string                // azkaban.flow.*, azkaban.job.*
}

// ForNode returns the scopes of one node. Properties of an instance of a for_each are looked up by its own path and by its template's.
func ForNode(flow *graph.Flow, run Run, node Node) Scopes {
	n := &flow.Nodes[node.Number]
	var scopes Scopes
	put := func(scope Scope) {
		if len(scope.Values) > 0 || scope.Empty {
			scopes = append(scopes, scope)
		}
	}
	add := func(from string, values map[string]string) { put(Scope{From: from, Values: values}) }
	own := func(from string, values map[string]string) { put(Scope{From: from, Values: values, Secrets: true}) }
	own("the installation", run.Global)
	if n.Type != graph.TypeFlow {
		own("shared properties", n.Shared)
	}
	own("the flow's config", flow.Config)
	add("the run", run.Params)
	for _, number := range append(Containers(flow, n), node.Number) {
		in := &flow.Nodes[number]
		for _, parent := range in.Parents {
			of := &flow.Nodes[parent]
			scope := Scope{From: "outputs of " + of.Path, Values: node.Outputs(parent), Data: of.ForEach != nil}
			scope.Empty = node.Empty != nil && node.Empty(parent)
			put(scope)
			if each := in.ForEach; each != nil && each.Node == of.Path[strings.LastIndexByte(of.Path, ':')+1:] {
				if list, found := scope.Values[each.Key]; found {
					put(Scope{From: scope.From, Values: map[string]string{each.Key: list}, Data: true})
				}
			}
		}
		own("config of "+in.Path, in.Config)
		add("the run's properties for "+in.Path, run.Nodes[in.Path])
	}
	if node.Item != nil {
		path := InstancePath(n.Path, node.Item.Index)
		add("the run's properties for "+path, run.Nodes[path])
		put(Scope{
			From: "the item", Values: map[string]string{"item": node.Item.Value, "item.index": strconv.Itoa(node.Item.Index)},
			Data: n.ForEach != nil && n.ForEach.Node != "",
		})
	}
	add("the run's time", node.Runtime)
	return scopes
}

// Containers returns the embedded flows that a node is in, from the outermost.
func Containers(flow *graph.Flow, n *graph.Node) []int {
	var numbers []int
	for c := n.Container; c != graph.Top; c = flow.Nodes[c].Container {
		numbers = append(numbers, c)
	}
	slices.Reverse(numbers)
	return numbers
}

// InstancePath returns the path of an instance of a for_each.
func InstancePath(template string, index int) string { return fmt.Sprintf("%s[%d]", template, index) }

// runtime are the properties that the engine sets for each node.
var runtime = []string{
	"azkaban.flow.execid", "azkaban.flow.flowid", "azkaban.flow.nested.path", "azkaban.flow.projectname", "azkaban.flow.projectversion",
	"azkaban.flow.start.day", "azkaban.flow.start.hour", "azkaban.flow.start.millisecond", "azkaban.flow.start.milliseconds", "azkaban.flow.start.minute",
	"azkaban.flow.start.month", "azkaban.flow.start.second", "azkaban.flow.start.timestamp", "azkaban.flow.start.timezone", "azkaban.flow.start.year",
	"azkaban.flow.submituser", "azkaban.flow.uuid", "azkaban.job.attempt", "azkaban.job.id", "azkaban.job.innodes", "azkaban.job.outnodes",
}

// Runtime returns the names of the properties that the engine sets for each node, sorted.
func Runtime() []string { return slices.Clone(runtime) }

// IsRuntime says whether the engine sets a property for each node.
func IsRuntime(name string) bool { return slices.Contains(runtime, name) }

// Reserved says whether a parameter is one that only the run itself sets: giving it a value has no effect where the run sets it.
func Reserved(name string) bool {
	return strings.HasPrefix(name, "azkaban.flow") || strings.HasPrefix(name, "azkaban.job")
}

// ParseOutputs reads the JSON object that a job wrote as its outputs.
func ParseOutputs(object []byte) (map[string]string, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	var values map[string]json.RawMessage
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("outputs are not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("outputs are not a JSON object: something follows it")
	}
	return Outputs(values)
}

// Outputs makes outputs of the values of a JSON object. Texts become what they hold, other values their JSON, compact; null is no
// output.
func Outputs(values map[string]json.RawMessage) (map[string]string, error) {
	outputs := make(map[string]string, len(values))
	for name, raw := range values {
		var text string
		var err error
		switch {
		case string(raw) == "null":
			continue
		case raw[0] == '"':
			err = json.Unmarshal(raw, &text)
		default:
			var b bytes.Buffer
			err = json.Compact(&b, raw)
			text = b.String()
		}
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
		outputs[name] = text
	}
	return outputs, nil
}
