// Package draw makes a picture of a flow: layers from its first nodes to its ends, embedded flows as boxes around their contents.
// The layout is Graphviz' dot, which the library brings along.
package draw

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/goccy/go-graphviz"

	"github.com/peltonq/pelton/jobs/flow/internal/draw/early"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

func init() { early.Restore() } //nolint:gochecknoinits // see package early

// MaxNodes is the most nodes that are drawn: more are neither laid out in reasonable time nor of use to anybody.
const MaxNodes = 5000

// Colours of nodes by status: fill and border.
var colours = map[string][2]string{
	"":                 {"#f5f7fa", "#8794a5"},
	"READY":            {"#f5f7fa", "#8794a5"},
	"QUEUED":           {"#fff3d6", "#c48a00"},
	"RUNNING":          {"#dbeafe", "#2563eb"},
	"KILLING":          {"#fde2e1", "#b42318"},
	"SUCCEEDED":        {"#dcf5e3", "#1a7f37"},
	"FAILED_SUCCEEDED": {"#e9f5dc", "#5b7f1a"},
	"SKIPPED":          {"#eceff3", "#b3bcc8"},
	"DISABLED":         {"#eceff3", "#b3bcc8"},
	"FAILED":           {"#fde2e1", "#b42318"},
	"KILLED":           {"#fbd5e5", "#9d174d"},
	"CANCELLED":        {"#eadff2", "#6b21a8"},
}

// busy is held while the library works: all of it is one machine with one memory.
var busy sync.Mutex

// SVG writes the picture of a flow. status gives a node's status by its path; nil: all are plain. Errors: more than MaxNodes nodes.
func SVG(ctx context.Context, w io.Writer, f *graph.Flow, status map[string]string) error {
	if len(f.Nodes) > MaxNodes {
		return fmt.Errorf("flow %s has %d nodes: more than %d are not drawn", f.Name, len(f.Nodes), MaxNodes)
	}
	busy.Lock()
	defer busy.Unlock()
	g, err := graphviz.New(ctx)
	if err != nil {
		return fmt.Errorf("draw flow %s: %w", f.Name, err)
	}
	defer g.Close() //nolint:errcheck // memory of this process
	parsed, err := graphviz.ParseBytes(source(f, status))
	if err != nil {
		return fmt.Errorf("draw flow %s: %w", f.Name, err)
	}
	defer parsed.Close() //nolint:errcheck // as above
	var picture bytes.Buffer
	if err := g.Render(ctx, parsed, graphviz.SVG, &picture); err != nil {
		return fmt.Errorf("draw flow %s: %w", f.Name, err)
	}
	_, err = w.Write(picture.Bytes())
	return err
}

// source is the flow in Graphviz' language.
func source(f *graph.Flow, status map[string]string) []byte {
	d := &drawing{flow: f, status: status, children: map[int][]int{}}
	for i := range f.Nodes {
		d.children[f.Nodes[i].Container] = append(d.children[f.Nodes[i].Container], i)
	}
	d.line(0, "digraph flow {")
	d.line(1, "compound=true; rankdir=TB; nodesep=0.25; ranksep=0.45; bgcolor=white;")
	d.line(1, "label=%s; labelloc=t; fontname=Helvetica; fontsize=16;", quote(f.Name))
	d.line(1, "node [shape=box style=\"rounded,filled\" fontname=Helvetica fontsize=11 height=0.3 margin=\"0.12,0.05\" penwidth=1.2];")
	d.line(1, "edge [color=\"#5f6b7a\" arrowsize=0.6];")
	d.contents(1, graph.Top)
	d.edges()
	d.line(0, "}")
	return d.text.Bytes()
}

type drawing struct {
	flow     *graph.Flow
	status   map[string]string
	children map[int][]int
	text     bytes.Buffer
}

func (d *drawing) line(depth int, format string, args ...any) {
	d.text.WriteString(strings.Repeat("\t", depth))
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *drawing) contents(depth, container int) {
	for _, i := range d.children[container] {
		n := &d.flow.Nodes[i]
		colour, known := colours[d.status[n.Path]]
		if !known {
			colour = colours[""]
		}
		if d.boxed(i) {
			d.line(depth, "subgraph cluster_%d {", i)
			d.line(depth+1, "label=%s; style=\"rounded,filled\"; fillcolor=%s; color=%s; fontsize=12; labeljust=l; tooltip=%s;",
				quote(name(n.Path)), quote("#fbfcfe"), quote(colour[1]), quote(tip(n, d.status)))
			d.contents(depth+1, i)
			d.line(depth, "}")
			continue
		}
		d.line(depth, "n%d [id=%s label=%s fillcolor=%s color=%s tooltip=%s];",
			i, quote(n.Path), quote(label(n)), quote(colour[0]), quote(colour[1]), quote(tip(n, d.status)))
	}
}

// boxed tells whether a node is drawn as a box around others.
func (d *drawing) boxed(i int) bool {
	return d.flow.Nodes[i].Type == graph.TypeFlow && len(d.children[i]) > 0
}

// edges are drawn from and to some node within a box, and cut off at its border.
func (d *drawing) edges() {
	for i := range d.flow.Nodes {
		for _, p := range d.flow.Nodes[i].Parents {
			var cut []string
			if d.boxed(p) {
				cut = append(cut, fmt.Sprintf("ltail=cluster_%d", p))
			}
			if d.boxed(i) {
				cut = append(cut, fmt.Sprintf("lhead=cluster_%d", i))
			}
			d.line(1, "n%d -> n%d [%s];", d.end(p), d.start(i), strings.Join(cut, " "))
		}
	}
}

// start is the first node within a box, at any depth.
func (d *drawing) start(i int) int {
	for d.boxed(i) {
		i = d.children[i][0]
	}
	return i
}

// end is the last node within a box, at any depth.
func (d *drawing) end(i int) int {
	for d.boxed(i) {
		i = d.children[i][len(d.children[i])-1]
	}
	return i
}

func name(path string) string { return path[strings.LastIndexByte(path, ':')+1:] }

func label(n *graph.Node) string {
	text := name(n.Path)
	if n.ForEach != nil {
		text += " [*]"
	}
	if n.Type != graph.TypeCommand && n.Type != graph.TypeFlow {
		text += "\n" + n.Type
	}
	return text
}

func tip(n *graph.Node, status map[string]string) string {
	text := n.Path + " (" + n.Type + ")"
	if s := status[n.Path]; s != "" {
		text += ": " + s
	}
	if n.Condition != "" {
		text += "\ncondition: " + n.Condition
	}
	return text
}

// quote is a string in Graphviz' language, in which a backslash has a meaning of its own.
func quote(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
