package flow2

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// maxNesting is how deep lists and mappings may stand in each other; an embedded flow takes two.
const maxNesting = 20 + 3*graph.MaxDepth

// document is a file that is YAML.
type document struct {
	file   string
	root   *yaml.Node // nil: the file is empty
	report *draft.Report
	budget int  // how many more values may be looked at
	spent  bool // and it was said that there were too many

	nodesLeft int // how many more nodes may be made
}

// parse returns nil if the file is no YAML, and says why.
func parse(file string, data []byte, report *draft.Report) *document {
	d := &document{file: file, report: report, budget: 200_000 + len(data), nodesLeft: graph.MaxNodes}
	if !utf8.Valid(data) {
		d.fault(0, "", "is not UTF-8 text")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxNesting))))
	if err != nil {
		d.fault(0, "", "cannot be parsed: %v", err)
		return nil
	}
	var root, more yaml.Node
	err = loader.Load(&root)
	switch {
	case errors.Is(err, io.EOF):
		return d
	case err == nil:
		d.root = content(&root)
		err = loader.Load(&more)
	}
	switch {
	case err == nil:
		d.fault(more.Line, "", "holds more than one document")
	case !errors.Is(err, io.EOF):
		line, reason := explain(err)
		d.fault(line, "", "%s", reason)
		return nil
	}
	return d
}

// explain takes the line out of an error of the library.
func explain(err error) (line int, reason string) {
	if failed, ok := errors.AsType[*yaml.LoadError](err); ok {
		return failed.Mark.Line, "is no YAML: " + failed.Message
	}
	return 0, "is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")
}

// content returns what a document holds, nil if that is nothing.
func content(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.DocumentNode {
		if len(n.Content) == 0 {
			return nil
		}
		n = n.Content[0]
	}
	if n.Kind == 0 || isNull(n) {
		return nil
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func (d *document) fault(line int, node, format string, args ...any) {
	d.report.Fault(draft.Place{File: d.file, Line: line, Node: node}, format, args...)
}

func (d *document) note(line int, node, format string, args ...any) {
	d.report.Note(draft.Place{File: d.file, Line: line, Node: node}, format, args...)
}

// field is a key of a mapping with its value.
type field struct {
	name  string
	line  int
	value *yaml.Node
}

// use counts a value, and follows it if it is an alias. It returns nil once there were too many: a file of a few lines can
// stand for billions of values by aliases of aliases.
func (d *document) use(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		d.budget--
		n = n.Alias
		if d.budget < 0 {
			break
		}
	}
	if d.budget--; d.budget < 0 {
		if !d.spent {
			d.fault(0, "", "its aliases stand for too many values")
		}
		d.spent = true
		return nil
	}
	return n
}

// fields returns the keys of a mapping in the order of the file, those of merge keys last. Node is what faults are about.
func (d *document) fields(n *yaml.Node, node string) []field {
	return d.merged(n, node, nil, map[string]int{})
}

func (d *document) merged(n *yaml.Node, node string, found []field, seen map[string]int) []field {
	if n = d.use(n); n == nil {
		return found
	}
	if n.Kind != yaml.MappingNode {
		if !isNull(n) {
			d.fault(n.Line, node, "want keys with values, not %s", kind(n))
		}
		return found
	}
	own := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := d.use(n.Content[i]), n.Content[i+1]
		switch {
		case key == nil:
			return found
		case key.Kind != yaml.ScalarNode:
			d.fault(key.Line, node, "a key must be text, not %s", kind(key))
			continue
		case key.Value == "<<" && key.Style == 0:
			merges = append(merges, value)
			continue
		}
		if line, twice := own[key.Value]; twice {
			d.fault(key.Line, node, "duplicate key %s: line %d has it too", key.Value, line)
			continue
		}
		own[key.Value] = key.Line
		if _, nearer := seen[key.Value]; !nearer {
			seen[key.Value] = key.Line
			found = append(found, field{key.Value, n.Content[i].Line, value})
		}
	}
	for _, m := range merges {
		list := []*yaml.Node{m}
		if at := d.use(m); at != nil && at.Kind == yaml.SequenceNode {
			list = at.Content
		}
		for _, one := range list {
			found = d.merged(one, node, found, seen)
		}
	}
	return found
}

// text returns a scalar as it was written, "" for null.
func (d *document) text(f field, node string) string {
	n := d.use(f.value)
	switch {
	case n == nil || isNull(n):
		return ""
	case n.Kind != yaml.ScalarNode:
		d.fault(f.line, node, "%s: want text, not %s", f.name, kind(n))
		return ""
	case n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.ShortTag(), "!!"):
		d.fault(f.line, node, "%s: the tag %s is not allowed", f.name, n.Tag)
		return ""
	case strings.Contains(n.Value, "\x00"):
		d.fault(f.line, node, "%s: holds a NUL character", f.name)
		return ""
	}
	return n.Value
}

// item is an element of a list.
type item struct {
	line int
	text string
}

// texts returns a list of scalars. A single scalar is a list of one.
func (d *document) texts(f field, node string) []item {
	n := d.use(f.value)
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		return []item{{f.line, d.text(f, node)}}
	}
	var items []item
	for _, e := range n.Content {
		if d.spent {
			return nil
		}
		items = append(items, item{e.Line, d.text(field{f.name, e.Line, e}, node)})
	}
	return items
}

// kind names a kind of value for people.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "the text " + quote(n.Value)
	default:
		return "nothing"
	}
}

// quote shortens a text for a message.
func quote(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "..."
	}
	return "\"" + strings.ReplaceAll(text, "\n", " ") + "\""
}
