package draw

import (
	"context"
	"math"
	"strings"
	"unicode"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

type point struct{ x, y int }

// segment is a piece of a path: M, V or C with so many numbers.
type segment struct {
	letter byte
	n      int
	at     [6]int
}

// layout is where everything is.
type layout struct {
	flow     *graph.Flow
	children [][]int // of containers: graph.Top + 1 and up
	at       []point // the upper left corner; within its container, and in the picture once settled
	size     []point
	lines    [][]edge // to each node, in its container likewise
}

// edge is how one is drawn.
type edge struct {
	line  []segment
	faint bool // one of very many
}

func newLayout(f *graph.Flow) *layout {
	n := len(f.Nodes)
	l := &layout{flow: f, children: make([][]int, n+1), at: make([]point, n), size: make([]point, n), lines: make([][]edge, n)}
	for i := range f.Nodes {
		c := f.Nodes[i].Container + 1
		l.children[c] = append(l.children[c], i)
	}
	return l
}

// boxed tells whether a node is drawn as a box around others.
func (l *layout) boxed(i int) bool {
	return l.flow.Nodes[i].Type == graph.TypeFlow && len(l.children[i+1]) > 0
}

// longestLabel is how many characters of a name are shown; the title has all.
const longestLabel = 40

func (l *layout) label(i int) string {
	n := &l.flow.Nodes[i]
	name := []rune(strings.ToValidUTF8(n.Path[strings.LastIndexByte(n.Path, ':')+1:], "\uFFFD"))
	if len(name) > longestLabel {
		name = append(name[:longestLabel-1], '\u2026')
	}
	if n.ForEach != nil {
		return string(name) + " [*]"
	}
	return string(name)
}

// kind is what stands below the name.
func (l *layout) kind(i int) string {
	if t := l.flow.Nodes[i].Type; t != graph.TypeCommand && t != graph.TypeFlow {
		return t
	}
	return ""
}

// width is about how wide a text is, in this size of letters.
func width(text string, size float64) int {
	w := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtf.,:;'|![]() ", r):
			w += 0.3
		case strings.ContainsRune("mwMW@%\u2026", r):
			w += 0.9
		case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0x1f000:
			w++
		case unicode.IsUpper(r):
			w += 0.7
		default:
			w += 0.57
		}
	}
	return int(math.Ceil(w * size))
}

// contents lays out what is in a container, and tells how large that is.
func (l *layout) contents(ctx context.Context, container int) (point, error) {
	items := l.children[container+1]
	for _, i := range items {
		if l.boxed(i) {
			inner, err := l.contents(ctx, i)
			if err != nil {
				return point{}, err
			}
			head := width(l.label(i), 11) + 14
			l.size[i] = point{max(inner.x, head) + 2*padding, inner.y + padding + headHeight}
			continue
		}
		l.size[i] = point{max(56, 30+max(width(l.label(i), 11), width(l.kind(i), 11))), 24}
		if l.kind(i) != "" {
			l.size[i].y = 36
		}
	}
	g := newLayers(l, items)
	if err := g.order(ctx); err != nil {
		return point{}, err
	}
	if err := g.place(ctx); err != nil {
		return point{}, err
	}
	return g.write(), nil
}

// settle turns places within containers into places in the picture.
func (l *layout) settle(container int, corner point) {
	for _, i := range l.children[container+1] {
		l.at[i].x += corner.x
		l.at[i].y += corner.y
		for _, e := range l.lines[i] {
			for k := range e.line {
				s := &e.line[k]
				for j := range s.at[:s.n] {
					if s.letter == 'V' || j%2 == 1 {
						s.at[j] += corner.y
					} else {
						s.at[j] += corner.x
					}
				}
			}
		}
		if l.boxed(i) {
			l.settle(i, point{l.at[i].x + padding, l.at[i].y + headHeight})
		}
	}
}
