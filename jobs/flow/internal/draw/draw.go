// Package draw makes a picture of a flow: layers from its first nodes to its ends, embedded flows as boxes around their contents.
//
// # How it works
//
// Nodes of one container are laid out by layers, after Sugiyama: a rank for each node (the longest way to it), an order within each
// layer that crosses few edges (sweeps of barycenters, the best is kept), and places as near to a node's neighbours as the order allows (isotonic
// regression, a row at a time). Edges never leave a container, so an embedded flow is laid out first and is then one large node of
// its own container. A layer that is much wider than the rest is broken into rows, as thousands of nodes behind one are.
//
// Long edges bend around nodes at points in the layers they pass; those of one node share them. There are at most maxBends; edges beyond are drawn straight.
// So the work is bounded by nodes and edges, and 4,000 nodes take about 50 ms. It ends early with its context.
//
// The picture is made without statuses, once for all runs of a flow. Written out, it is coloured in one pass; a page colours it by classes.
package draw

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Limits of a picture: more is of no use to anybody.
const (
	MaxNodes = 5000
	MaxEdges = 50_000
)

// ErrTooLarge says that a flow has more nodes or edges than are drawn.
var ErrTooLarge = errors.New("too large to be drawn")

// colour is how a status looks in a file: fill and border, and a sign for those who do not see them.
type colour struct{ fill, border, sign string }

var colours = map[string]colour{
	"":                 {"#f5f7fa", "#8794a5", ""},
	"READY":            {"#f5f7fa", "#8794a5", ""},
	"QUEUED":           {"#fff3d6", "#c48a00", "\u22ef "},
	"RUNNING":          {"#dbeafe", "#2563eb", "\u25b6 "},
	"KILLING":          {"#fde2e1", "#b42318", "! "},
	"SUCCEEDED":        {"#dcf5e3", "#1a7f37", "\u2713 "},
	"FAILED_SUCCEEDED": {"#e9f5dc", "#5b7f1a", "\u2713 "},
	"SKIPPED":          {"#eceff3", "#b3bcc8", "\u2013 "},
	"DISABLED":         {"#eceff3", "#b3bcc8", "\u2013 "},
	"FAILED":           {"#fde2e1", "#b42318", "\u2715 "},
	"KILLED":           {"#fbd5e5", "#9d174d", "\u2715 "},
	"CANCELLED":        {"#eadff2", "#6b21a8", "\u25cb "},
}

// Picture is a flow's, without statuses. Safe for concurrent use.
type Picture struct {
	text   []byte
	cuts   []cut // where something depends on a status
	zipped []byte
	sum    string
}

// cut is a place in the text where something of a node's status belongs.
type cut struct {
	at, node int
	what     byte // c: colours of a node, b: of a box, s: the sign, t: the status by name
}

// Bytes are the picture for a page: an svg element without colours. Node i of the flow is the group n followed by i, of class node or, if it is a box around
// others, box; in it are title, rect and text, which begins with an empty tspan for a sign. They must not be changed.
func (p *Picture) Bytes() []byte { return p.text }

// Gzip are the Bytes, compressed.
func (p *Picture) Gzip() []byte { return p.zipped }

// Sum tells pictures apart: two with the same have the same Bytes.
func (p *Picture) Sum() string { return p.sum }

// Size is about how many bytes it takes.
func (p *Picture) Size() int { return len(p.text) + len(p.zipped) + 24*len(p.cuts) }

// Write writes the picture as a file, its nodes coloured by their statuses; nil: all are plain.
func (p *Picture) Write(w io.Writer, status func(node int) string) error {
	var out bytes.Buffer
	out.Grow(len(p.text) + 24*len(p.cuts))
	from := 0
	for _, c := range p.cuts {
		out.Write(p.text[from:c.at])
		from = c.at
		var name string
		if status != nil {
			name = status(c.node)
		}
		look, known := colours[name]
		if !known {
			look = colours[""]
		}
		switch c.what {
		case 'c':
			out.WriteString(` fill="` + look.fill + `" stroke="` + look.border + `"`)
		case 'b':
			out.WriteString(` fill="#fbfcfe" stroke="` + look.border + `"`)
		case 's':
			out.WriteString(look.sign)
		case 't':
			if known && name != "" {
				out.WriteString(": " + name)
			}
		}
	}
	out.Write(p.text[from:])
	_, err := w.Write(out.Bytes())
	return err
}

// Draw makes the picture of a flow. Errors: ErrTooLarge, or the context's.
func Draw(ctx context.Context, f *graph.Flow) (*Picture, error) {
	if len(f.Nodes) > MaxNodes {
		return nil, fmt.Errorf("flow %s has %d nodes: more than %d are not drawn: %w", f.Name, len(f.Nodes), MaxNodes, ErrTooLarge)
	}
	edges := 0
	for i := range f.Nodes {
		edges += len(f.Nodes[i].Parents)
	}
	if edges > MaxEdges {
		return nil, fmt.Errorf("flow %s has %d edges: more than %d are not drawn: %w", f.Name, edges, MaxEdges, ErrTooLarge)
	}
	l := newLayout(f)
	size, err := l.contents(ctx, graph.Top)
	if err != nil {
		return nil, fmt.Errorf("draw flow %s: %w", f.Name, err)
	}
	l.settle(graph.Top, point{margin, margin + titleHeight})
	title := width(f.Name, 16)
	size.x = max(size.x, title)
	d := &writer{layout: l, picture: &Picture{}}
	d.svg(point{size.x + 2*margin, size.y + 2*margin + titleHeight})
	return d.picture, d.picture.compress()
}

// compress prepares what is asked for most.
func (p *Picture) compress() error {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return fmt.Errorf("compress a picture: %w", err)
	}
	_, err = z.Write(p.text)
	if err = errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("compress a picture: %w", err)
	}
	sum := sha256.Sum256(p.text)
	p.zipped, p.sum = out.Bytes(), hex.EncodeToString(sum[:8])
	return nil
}

// Sizes, in pixels.
const (
	margin      = 12
	titleHeight = 24
	headHeight  = 20 // of a box
	padding     = 10 // in a box
)

// writer writes what was laid out.
type writer struct {
	*layout
	out     bytes.Buffer
	picture *Picture
}

func (d *writer) put(parts ...any) {
	for _, p := range parts {
		switch v := p.(type) {
		case int:
			d.out.Write(strconv.AppendInt(d.out.AvailableBuffer(), int64(v), 10))
		case string:
			d.out.WriteString(v)
		}
	}
}

func (d *writer) cut(node int, what byte) {
	d.picture.cuts = append(d.picture.cuts, cut{d.out.Len(), node, what})
}

func (d *writer) svg(size point) {
	d.put(`<svg xmlns="http://www.w3.org/2000/svg" width="`, size.x, `" height="`, size.y, `" viewBox="0 0 `, size.x, " ", size.y,
		`" font-family="Helvetica,Arial,Liberation Sans,sans-serif" font-size="11" text-anchor="middle" fill="#1b2430">`)
	d.put(`<rect class="ground" width="100%" height="100%" fill="#ffffff"/>`)
	d.put(`<text class="name" x="`, size.x/2, `" y="`, margin+10, `" font-size="16">`, escaped(d.flow.Name), "</text>\n")
	d.boxes(graph.Top)
	d.edges(`<g class="edges" fill="none" stroke="#5f6b7a">`, func(e *edge) bool { return !e.faint })
	d.edges(`<g class="edges faint" fill="none" stroke="#5f6b7a" stroke-opacity="0.2">`, func(e *edge) bool { return e.faint })
	for i := range d.flow.Nodes {
		if !d.boxed(i) {
			d.node(i)
		}
	}
	d.put("</svg>\n")
	d.picture.text = d.out.Bytes()
}

func (d *writer) edges(group string, chosen func(*edge) bool) {
	d.put(group, "\n")
	for i := range d.lines {
		for k := range d.lines[i] {
			e := &d.lines[i][k]
			if !chosen(e) {
				continue
			}
			d.put(`<path d="`)
			for _, s := range e.line {
				d.out.WriteByte(s.letter)
				for j, v := range s.at[:s.n] {
					if j > 0 {
						d.out.WriteByte(' ')
					}
					d.put(v)
				}
			}
			d.put("\"/>\n")
		}
	}
	d.put("</g>\n")
}

// boxes writes the boxes in a container, outer ones before inner ones.
func (d *writer) boxes(container int) {
	for _, i := range d.children[container+1] {
		if !d.boxed(i) {
			continue
		}
		d.group(i, "box", 'b')
		d.put(`<text x="`, d.at[i].x+padding, `" y="`, d.at[i].y+14, `" text-anchor="start"><tspan>`)
		d.cut(i, 's')
		d.put("</tspan>", escaped(d.label(i)), "</text></g>\n")
		d.boxes(i)
	}
}

func (d *writer) node(i int) {
	d.group(i, "node", 'c')
	text, kind := d.label(i), d.kind(i)
	middle, base := d.at[i].x+d.size[i].x/2, d.at[i].y+d.size[i].y/2+4
	if kind != "" {
		base -= 6
	}
	d.put(`<text x="`, middle, `" y="`, base, `"><tspan>`)
	d.cut(i, 's')
	d.put("</tspan>", escaped(text), "</text>")
	if kind != "" {
		d.put(`<text class="type" x="`, middle, `" y="`, base+13, `">`, escaped(kind), "</text>")
	}
	d.put("</g>\n")
}

// group begins a node's group.
func (d *writer) group(i int, class string, colours byte) {
	n := &d.flow.Nodes[i]
	d.put(`<g id="n`, i, `" class="`, class, `"><title>`, escaped(n.Path+" ("+n.Type+")"))
	d.cut(i, 't')
	if n.Condition != "" {
		d.put(escaped("\ncondition: " + n.Condition))
	}
	d.put("</title><rect")
	d.cut(i, colours)
	d.put(` x="`, d.at[i].x, `" y="`, d.at[i].y, `" width="`, d.size[i].x, `" height="`, d.size[i].y, `" rx="4"/>`)
}

// escaped is a text in XML, without the characters that XML cannot hold.
func escaped(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0xfffe || r == 0xffff {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return html.EscapeString(s)
}
