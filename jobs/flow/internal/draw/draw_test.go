package draw_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/draw"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// drawn is what a picture shows.
type drawn struct {
	text  string
	rects map[string]rect // by the id of their groups
	edges []string        // their paths
}

type rect struct{ x, y, width, height int }

func (r rect) holds(o rect) bool {
	return o.x >= r.x && o.y >= r.y && o.x+o.width <= r.x+r.width && o.y+o.height <= r.y+r.height
}

func (r rect) meets(o rect) bool {
	return o.x < r.x+r.width && r.x < o.x+o.width && o.y < r.y+r.height && r.y < o.y+o.height
}

// parse reads a picture, and checks that it is XML without styles, scripts and links.
func parse(t *testing.T, svg []byte) drawn {
	t.Helper()
	d := drawn{rects: map[string]rect{}}
	var text strings.Builder
	group := ""
	for x := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			d.text = text.String()
			return d
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.CharData:
			text.Write(token)
		case xml.StartElement:
			value := map[string]string{}
			for _, a := range token.Attr {
				value[a.Name.Local] = a.Value
			}
			switch name := token.Name.Local; name {
			case "g":
				group = value["id"]
			case "rect":
				if group != "" {
					d.rects[group] = rect{number(t, value["x"]), number(t, value["y"]), number(t, value["width"]), number(t, value["height"])}
				}
			case "path":
				d.edges = append(d.edges, value["d"])
			case "svg", "text", "tspan", "title":
			default:
				t.Errorf("there is an element %s", name)
			}
			if value["style"] != "" || value["href"] != "" {
				t.Errorf("%s has %v", token.Name.Local, value)
			}
		}
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func draws(t *testing.T, f *graph.Flow) *draw.Picture {
	t.Helper()
	p, err := draw.Draw(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPictureOfAFlow(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "night <run>", Nodes: []graph.Node{
		{Path: "first", Type: graph.TypeCommand, Container: graph.Top},
		{Path: "box", Type: graph.TypeFlow, Container: graph.Top, Parents: []int{0}},
		{Path: "box:in \"quotes\" \\N & so", Type: graph.TypeCommand, Container: 1},
		{Path: "box:deep", Type: graph.TypeFlow, Container: 1, Parents: []int{2}},
		{Path: "box:deep:é", Type: graph.TypeNoop, Container: 3, Condition: "one_success"},
		{Path: "last</title><script>\x00", Type: "hive", Container: graph.Top, Parents: []int{0, 1}},
	}}
	p := draws(t, f)
	for what, svg := range map[string][]byte{"for a page": p.Bytes(), "as a file": written(t, p, func(i int) string {
		return map[int]string{1: "RUNNING", 5: "FAILED"}[i]
	})} {
		d := parse(t, svg)
		for _, want := range []string{"night <run>", "first", "box", `in "quotes" \N & so`, "deep", "é", "last</title><script>\uFFFD", "hive", "condition: one_success"} {
			if !strings.Contains(d.text, want) {
				t.Errorf("%s: no %q in %s", what, want, d.text)
			}
		}
		if len(d.edges) != 4 || len(d.rects) != 6 {
			t.Errorf("%s: %d edges and %d nodes, want 4 and 6", what, len(d.edges), len(d.rects))
		}
		if !d.rects["n1"].holds(d.rects["n2"]) || !d.rects["n1"].holds(d.rects["n3"]) || !d.rects["n3"].holds(d.rects["n4"]) || d.rects["n1"].meets(d.rects["n5"]) {
			t.Errorf("%s: boxes and what is in them: %v", what, d.rects)
		}
		coloured := strings.Contains(string(svg), "#b42318") && strings.Contains(d.text, ": FAILED") && strings.Contains(d.text, "\u2715 last")
		if coloured != (what == "as a file") {
			t.Errorf("%s: %s", what, svg)
		}
	}
}

func written(t *testing.T, p *draw.Picture, status func(int) string) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out, status); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// grown makes a flow by chance: of nodes with parents before them, some in boxes.
func grown(seed uint64, nodes int) *graph.Flow {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's
	f := &graph.Flow{Name: "grown"}
	in := map[int][]int{} // by container
	containers := []int{graph.Top}
	for i := range nodes {
		c := containers[r.IntN(len(containers))]
		n := graph.Node{Path: "n" + strconv.Itoa(i), Type: graph.TypeCommand, Container: c}
		if r.IntN(8) == 0 {
			n.Type = graph.TypeFlow
			containers = append(containers, i)
		}
		for _, p := range in[c] {
			if r.IntN(len(in[c])) < 2 {
				n.Parents = append(n.Parents, p)
			}
		}
		in[c] = append(in[c], i)
		f.Nodes = append(f.Nodes, n)
	}
	return f
}

// Whatever the flow: nodes do not lie on each other, what is in a box is inside it, children are below their parents.
func TestNothingOverlaps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		f := grown(seed, 2+int(seed)*2)
		d := parse(t, draws(t, f).Bytes())
		at := func(i int) rect { return d.rects["n"+strconv.Itoa(i)] }
		edges := 0
		for i, n := range f.Nodes {
			if n.Container != graph.Top && !at(n.Container).holds(at(i)) {
				t.Errorf("seed %d: node %d is not in its box: %v, %v", seed, i, at(i), at(n.Container))
			}
			for _, p := range n.Parents {
				edges++
				if at(p).y+at(p).height >= at(i).y {
					t.Errorf("seed %d: node %d is not below its parent %d", seed, i, p)
				}
			}
			for j := range i {
				if f.Nodes[j].Container == n.Container && at(i).meets(at(j)) {
					t.Errorf("seed %d: nodes %d and %d lie on each other: %v, %v", seed, i, j, at(i), at(j))
				}
			}
		}
		if len(d.edges) != edges {
			t.Errorf("seed %d: %d edges, want %d", seed, len(d.edges), edges)
		}
	}
}

// A ladder of a few nodes in each layer needs no crossing.
func TestFewEdgesCross(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "ladder"}
	for i := range 40 {
		n := graph.Node{Path: "n" + strconv.Itoa(i), Type: graph.TypeCommand, Container: graph.Top}
		if i >= 4 {
			n.Parents = []int{(i/4-1)*4 + (i*3)%4} // each layer in another order
		}
		f.Nodes = append(f.Nodes, n)
	}
	d := parse(t, draws(t, f).Bytes())
	for i := range f.Nodes {
		for j := range i {
			if i/4 != j/4 || i < 4 {
				continue
			}
			p, q := f.Nodes[i].Parents[0], f.Nodes[j].Parents[0]
			at := func(k int) int { return d.rects["n"+strconv.Itoa(k)].x }
			if (at(i) < at(j)) != (at(p) < at(q)) {
				t.Errorf("the edges to %d and %d cross", i, j)
			}
		}
	}
}

// Thousands of nodes behind one make a picture that can be looked at, not a line.
func TestWideLayersAreBroken(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "fan", Nodes: []graph.Node{{Path: "first", Type: graph.TypeNoop, Container: graph.Top}}}
	for i := range 2000 {
		f.Nodes = append(f.Nodes, graph.Node{Path: fmt.Sprintf("n%d", i), Type: graph.TypeCommand, Container: graph.Top, Parents: []int{0}})
	}
	d := parse(t, draws(t, f).Bytes())
	wide, high := 0, 0
	for _, r := range d.rects {
		wide, high = max(wide, r.x+r.width), max(high, r.y+r.height)
	}
	if wide > 4*high || high > 4*wide {
		t.Errorf("the picture is %d by %d", wide, high)
	}
}

func TestPictureOfALargeFlow(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "f"}
	for i := range 1000 {
		n := graph.Node{Path: fmt.Sprintf("n%d", i), Type: graph.TypeCommand, Container: graph.Top}
		if i > 0 {
			n.Parents = []int{(i - 1) / 3, i - 1} // edges through very many layers
		}
		f.Nodes = append(f.Nodes, n)
	}
	if d := parse(t, draws(t, f).Bytes()); len(d.rects) != 1000 || len(d.edges) != 1998 {
		t.Errorf("%d nodes and %d edges", len(d.rects), len(d.edges))
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := draw.Draw(over, f); !errors.Is(err, context.Canceled) {
		t.Errorf("a drawing that nobody waits for: %v", err)
	}
	many := &graph.Flow{Name: "f", Nodes: make([]graph.Node, draw.MaxNodes+1)}
	if _, err := draw.Draw(t.Context(), many); !errors.Is(err, draw.ErrTooLarge) || !strings.Contains(err.Error(), "more than 5000") {
		t.Errorf("too many nodes: %v", err)
	}
	f.Nodes[999].Parents = make([]int, draw.MaxEdges)
	if _, err := draw.Draw(t.Context(), f); !errors.Is(err, draw.ErrTooLarge) {
		t.Errorf("too many edges: %v", err)
	}
}
