package draw

import (
	"cmp"
	"context"
	"slices"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

const (
	maxBends = 20_000 // points in which the long edges of a container bend
	sweeps   = 12
)

// vertex is a node in a layer, or a point in which edges bend on their way through it.
type vertex struct {
	node     int // none: a bend
	rank     int
	row      int
	broken   bool // its layer is, into many rows
	size     point
	place    int // in its layer
	x        float64
	up, down []int // vertices in the layers next to it, or, of straight edges, further away
}

const none = -1

// layers are the contents of one container.
type layers struct {
	*layout
	items    []int
	vertices []vertex // those of items first
	layers   [][]int  // vertices, from left to right
	rows     [][]int  // the same, wide layers broken
	bends    map[int][]int
}

// newLayers finds the layer of each node, and makes the bends of edges that pass through layers.
func newLayers(l *layout, items []int) *layers {
	g := &layers{layout: l, items: items, vertices: make([]vertex, len(items)), bends: map[int][]int{}}
	local := make(map[int]int, len(items))
	for k, i := range items {
		local[i] = k
		g.vertices[k] = vertex{node: i, size: l.size[i]}
	}
	parents := make([][]int, len(items))
	for k, i := range items {
		for _, p := range l.flow.Nodes[i].Parents {
			if q, inside := local[p]; inside {
				parents[k] = append(parents[k], q)
			}
		}
	}
	g.rank(parents)
	bends := 0
	for k := range items {
		for _, p := range parents[k] {
			bends = g.connect(p, k, bends)
		}
	}
	for v := range g.vertices {
		r := g.vertices[v].rank
		for len(g.layers) <= r {
			g.layers = append(g.layers, nil)
		}
		g.vertices[v].place = len(g.layers[r])
		g.layers[r] = append(g.layers[r], v)
	}
	return g
}

// rank puts each node below all its parents, and those with more children than parents as near to the children as that allows.
func (g *layers) rank(parents [][]int) {
	children := graph.Children(parents)
	order := graph.Order(parents)
	for _, k := range order {
		for _, p := range parents[k] {
			g.vertices[k].rank = max(g.vertices[k].rank, g.vertices[p].rank+1)
		}
	}
	for _, k := range slices.Backward(order) {
		if len(children[k]) <= len(parents[k]) {
			continue
		}
		nearest := g.vertices[children[k][0]].rank
		for _, c := range children[k] {
			nearest = min(nearest, g.vertices[c].rank)
		}
		g.vertices[k].rank = nearest - 1
	}
}

// connect adds an edge, with a bend in each layer that it passes, and returns how many bends there are now.
func (g *layers) connect(from, to, bends int) int {
	chain := g.bends[from]
	first, last := g.vertices[from].rank+1, g.vertices[to].rank
	need := last - first
	if bends+max(0, need-len(chain)) > maxBends {
		g.join(from, to)
		return bends
	}
	at := from
	for r := range need {
		if r == len(chain) {
			g.vertices = append(g.vertices, vertex{node: none, rank: first + r, size: point{8, 0}})
			chain = append(chain, len(g.vertices)-1)
			g.join(at, chain[r])
			bends++
		}
		at = chain[r]
	}
	g.bends[from] = chain
	g.join(at, to)
	return bends
}

func (g *layers) join(upper, lower int) {
	g.vertices[upper].down = append(g.vertices[upper].down, lower)
	g.vertices[lower].up = append(g.vertices[lower].up, upper)
}

// order looks for an order in each layer in which few edges cross.
func (g *layers) order(ctx context.Context) error {
	best, fewest := g.snapshot(), g.crossings()
	for sweep := 0; sweep < sweeps && fewest > 0; sweep++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if sweep%2 == 0 {
			for r := 1; r < len(g.layers); r++ {
				g.sort(r, func(v *vertex) []int { return v.up })
			}
		} else {
			for r := len(g.layers) - 2; r >= 0; r-- {
				g.sort(r, func(v *vertex) []int { return v.down })
			}
		}
		if n := g.crossings(); n < fewest {
			best, fewest = g.snapshot(), n
		}
	}
	for r, layer := range best {
		g.arrange(r, layer)
	}
	return nil
}

func (g *layers) snapshot() [][]int {
	all := make([][]int, len(g.layers))
	for r, layer := range g.layers {
		all[r] = slices.Clone(layer)
	}
	return all
}

func (g *layers) arrange(r int, layer []int) {
	g.layers[r] = layer
	for place, v := range layer {
		g.vertices[v].place = place
	}
}

// sort puts the vertices of a layer in the order of the middle of their neighbours on one side; those without any stay where they are.
func (g *layers) sort(r int, neighbours func(*vertex) []int) {
	layer := g.layers[r]
	middle := make([]float64, len(layer))
	var moving []int // places whose vertices move
	for place, v := range layer {
		list := neighbours(&g.vertices[v])
		if len(list) == 0 {
			continue
		}
		for _, u := range list {
			middle[place] += float64(g.vertices[u].place)
		}
		middle[place] /= float64(len(list))
		moving = append(moving, place)
	}
	sorted := slices.Clone(moving)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
	next := slices.Clone(layer)
	for k, place := range moving {
		next[place] = layer[sorted[k]]
	}
	g.arrange(r, next)
}

// crossings counts the pairs of edges between layers next to each other that cross.
func (g *layers) crossings() int {
	total := 0
	var ends []int
	for r := 1; r < len(g.layers); r++ {
		ends = ends[:0]
		for _, v := range g.layers[r-1] {
			from := len(ends)
			for _, u := range g.vertices[v].down {
				if g.vertices[u].rank == r {
					ends = append(ends, g.vertices[u].place)
				}
			}
			slices.Sort(ends[from:])
		}
		total += inversions(ends, len(g.layers[r]))
	}
	return total
}

// inversions counts the pairs that are not in order, of numbers below n.
func inversions(list []int, n int) int {
	tree := make([]int, n+1) // Fenwick's: how many of those seen are up to a number
	total := 0
	for seen, v := range list {
		upTo := 0
		for i := v + 1; i > 0; i -= i & -i {
			upTo += tree[i]
		}
		total += seen - upTo
		for i := v + 1; i <= n; i += i & -i {
			tree[i]++
		}
	}
	return total
}
