package alert

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/peltonq/pelton/internal/suggest"
)

// Fault is something that is wrong with a file.
type Fault struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.File, f.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Reason)
}

// FileError holds everything that is wrong with a file.
type FileError struct{ Faults []Fault }

func (e *FileError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

const (
	maxFile    = 1 << 20
	maxNesting = 10
)

// document is a file while it is read, and what was found wrong with it.
type document struct {
	path   string
	faults []Fault
}

func (d *document) fault(line int, format string, args ...any) {
	d.faults = append(d.faults, Fault{d.path, line, fmt.Sprintf(format, args...)})
}

// err is all that is wrong, in the order of lines.
func (d *document) err() error {
	if len(d.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(d.faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return &FileError{slices.Compact(d.faults)}
}

// load reads YAML of one document; nil if it is none, or empty.
func (d *document) load(data []byte) *yaml.Node {
	switch {
	case len(data) > maxFile:
		d.fault(0, "is larger than %d bytes", maxFile)
		return nil
	case !utf8.Valid(data):
		d.fault(0, "is not UTF-8 text")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxNesting))))
	if err != nil {
		d.fault(0, "cannot be read: %v", err)
		return nil
	}
	var root, more yaml.Node
	if err = loader.Load(&root); err == nil {
		err = loader.Load(&more)
		if err == nil {
			d.fault(more.Line, "holds more than one document")
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		if failed, ok := errors.AsType[*yaml.LoadError](err); ok {
			d.fault(failed.Mark.Line, "is no YAML: %s", failed.Message)
		} else {
			d.fault(0, "is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return nil
	}
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		return root.Content[0]
	}
	return nil
}

// field is a value of a mapping, by its key.
type field struct {
	name  string
	line  int
	value *yaml.Node
}

// fields are the keys of a mapping in the order of the file. What is about them begins with where, "rule x: " or so.
func (d *document) fields(n *yaml.Node, line int, where string) []field {
	if isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fault(cmp.Or(n.Line, line), "%swant keys with values, not %s", where, kindOf(n))
		return nil
	}
	var list []field
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch before, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Value == "<<":
			d.fault(key.Line, "%sa key must be text, not %s", where, kindOf(key))
			continue
		case twice:
			d.fault(key.Line, "%sduplicate key %s: line %d has it too", where, key.Value, before)
			continue
		}
		lines[key.Value] = key.Line
		list = append(list, field{key.Value, key.Line, n.Content[i+1]})
	}
	return list
}

// setters are what to do with the values of a mapping, by key.
type setters map[string]func(f field)

// set calls the setter of each key, and says which are unknown.
func (d *document) set(n *yaml.Node, line int, where string, to setters) {
	for _, f := range d.fields(n, line, where) {
		if set, known := to[f.name]; known {
			set(f)
			continue
		}
		d.unknown(f.line, where+"unknown key", f.name, slices.Sorted(maps.Keys(to)))
	}
}

func (d *document) unknown(line int, what, word string, known []string) {
	d.fault(line, "%s %q%s", what, word, hint(word, known))
}

// hint says what may have been meant.
func hint(word string, known []string) string {
	if len(known) == 0 {
		return "; there are none"
	}
	return suggest.Near(word, known)
}

// text is a scalar as it was written.
func (d *document) text(f field, where string) (string, bool) {
	switch n := f.value; {
	case isNull(n):
		d.fault(f.line, "%s%s has no value", where, f.name)
	case n.Kind != yaml.ScalarNode:
		d.fault(f.line, "%s%s: want text, not %s", where, f.name, kindOf(n))
	case strings.Contains(n.Value, "\x00"):
		d.fault(f.line, "%s%s holds a NUL character", where, f.name)
	case n.Value == "":
		d.fault(f.line, "%s%s is empty", where, f.name)
	default:
		return n.Value, true
	}
	return "", false
}

// texts is a list of scalars, or a single one.
func (d *document) texts(f field, where string) []field {
	if f.value.Kind != yaml.SequenceNode {
		if _, ok := d.text(f, where); !ok {
			return nil
		}
		return []field{f}
	}
	if len(f.value.Content) == 0 {
		d.fault(f.line, "%s%s is an empty list", where, f.name)
	}
	var list []field
	for _, n := range f.value.Content {
		one := field{f.name, n.Line, n}
		if _, ok := d.text(one, where); ok {
			list = append(list, one)
		}
	}
	return list
}

func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	case yaml.ScalarNode:
		if len(n.Value) > 40 {
			return fmt.Sprintf("%q...", strings.ToValidUTF8(n.Value[:40], ""))
		}
		return fmt.Sprintf("%q", n.Value)
	default:
		return "nothing"
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
