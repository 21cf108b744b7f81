package draw

import (
	"context"
	"math"
	"slices"
)

// Distances, in pixels.
const (
	apart     = 18 // nodes in a row
	layersGap = 34 // between layers
	rowsGap   = 12 // between the rows of a layer that was broken
	passes    = 8
	widestRow = 3000 // of a picture that has few nodes
	faintFrom = 3    // rows of a layer, from which on its edges are faint
)

// place gives each vertex its x, as near to its neighbours as the order in its row allows.
func (g *layers) place(ctx context.Context) error {
	g.breakLayers()
	for _, row := range g.rows {
		x := 0.0
		for _, v := range row {
			g.vertices[v].x = x + float64(g.vertices[v].size.x)/2
			x += float64(g.vertices[v].size.x) + apart
		}
		for _, v := range row {
			g.vertices[v].x -= x / 2
		}
	}
	up, down := func(v *vertex) []int { return v.up }, func(v *vertex) []int { return v.down }
	for pass := range passes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if pass%2 == 0 {
			for _, row := range g.rows {
				g.straighten(row, up)
			}
		} else {
			for _, row := range slices.Backward(g.rows) {
				g.straighten(row, down)
			}
		}
	}
	for _, row := range g.rows {
		g.straighten(row, up, down)
	}
	return nil
}

// breakLayers breaks layers that would make the picture much wider than high.
func (g *layers) breakLayers() {
	area := 0.0
	for i := range g.vertices {
		if v := &g.vertices[i]; v.node != none {
			area += float64(v.size.x+apart) * float64(v.size.y+rowsGap)
		}
	}
	widest := max(widestRow, 1.7*math.Sqrt(area))
	for _, layer := range g.layers {
		from, wide, first := 0, 0.0, len(g.rows)
		for k, v := range layer {
			w := float64(g.vertices[v].size.x + apart)
			if k > from && wide+w > widest {
				g.rows = append(g.rows, layer[from:k])
				from, wide = k, 0
			}
			wide += w
			g.vertices[v].row = len(g.rows)
		}
		g.rows = append(g.rows, layer[from:])
		for _, v := range layer {
			g.vertices[v].broken = len(g.rows)-first >= faintFrom
		}
	}
}

// block is a run of vertices in a row that touch each other.
type block struct {
	first       int
	sum, weight float64
}

// straighten moves the vertices of a row to the middle of their neighbours, in their order and apart from each other: the least sum of
// squares, found by pooling those that would come in each other's way.
func (g *layers) straighten(row []int, sides ...func(*vertex) []int) {
	blocks := make([]block, 0, len(row))
	offsets := make([]float64, len(row))
	for k, v := range row {
		at := &g.vertices[v]
		if k > 0 {
			offsets[k] = offsets[k-1] + float64(at.size.x+g.vertices[row[k-1]].size.x)/2 + apart
		}
		wanted, n := 0.0, 0
		for _, side := range sides {
			for _, u := range side(at) {
				wanted += g.vertices[u].x
				n++
			}
		}
		weight := 1.0
		switch {
		case n == 0:
			wanted, n, weight = at.x, 1, 0.05
		case at.node == none:
			weight = 4 // long edges had better be straight
		}
		b := block{k, weight * (wanted/float64(n) - offsets[k]), weight}
		for len(blocks) > 0 {
			last := blocks[len(blocks)-1]
			if last.sum/last.weight < b.sum/b.weight {
				break
			}
			b = block{last.first, last.sum + b.sum, last.weight + b.weight}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for n, b := range blocks {
		end := len(row)
		if n+1 < len(blocks) {
			end = blocks[n+1].first
		}
		for k := b.first; k < end; k++ {
			g.vertices[row[k]].x = b.sum/b.weight + offsets[k]
		}
	}
}

// write stores places and lines, and tells how large all of it is.
func (g *layers) write() point {
	left, right := math.Inf(1), math.Inf(-1)
	for i := range g.vertices {
		v := &g.vertices[i]
		left, right = min(left, v.x-float64(v.size.x)/2), max(right, v.x+float64(v.size.x)/2)
	}
	if len(g.vertices) == 0 {
		left, right = 0, 0
	}
	tops, bottoms := make([]int, len(g.rows)), make([]int, len(g.rows))
	y := 0
	for r, row := range g.rows {
		if r > 0 {
			if g.vertices[row[0]].rank == g.vertices[g.rows[r-1][0]].rank {
				y += rowsGap
			} else {
				y += layersGap
			}
		}
		high := 0
		for _, v := range row {
			high = max(high, g.vertices[v].size.y)
		}
		tops[r], bottoms[r] = y, y+high
		y += high
	}
	middle := func(v int) int { return int(math.Round(g.vertices[v].x - left)) }
	for k, i := range g.items {
		v := &g.vertices[k]
		g.at[i] = point{middle(k) - v.size.x/2, tops[v.row] + (bottoms[v.row]-tops[v.row]-v.size.y)/2}
	}
	for k, i := range g.items {
		for _, to := range g.vertices[k].down {
			g.follow(k, to, tops, bottoms, middle, g.vertices[k].broken, []segment{{'M', 2, [6]int{middle(k), g.at[i].y + g.size[i].y}}})
		}
	}
	return point{int(math.Ceil(right - left)), y}
}

// follow draws the edges that come from a vertex, through bends, to the nodes they lead to.
func (g *layers) follow(from, to int, tops, bottoms []int, middle func(int) int, faint bool, line []segment) {
	for {
		f, t := &g.vertices[from], &g.vertices[to]
		start, end := bottoms[f.row], tops[t.row]
		line = append(line, segment{'V', 1, [6]int{start}})
		if t.node != none {
			end = g.at[t.node].y - 1
		}
		half := (start + end) / 2
		line = append(line, segment{'C', 6, [6]int{middle(from), half, middle(to), half, middle(to), end}})
		if t.node != none {
			x := middle(to)
			line = append(line, segment{'M', 2, [6]int{x - 3, end - 5}}, segment{'L', 4, [6]int{x, end, x + 3, end - 5}})
			g.lines[t.node] = append(g.lines[t.node], edge{line, faint || t.broken})
			return
		}
		for _, next := range t.down[1:] {
			g.follow(to, next, tops, bottoms, middle, faint, slices.Clip(line))
		}
		from, to = to, t.down[0]
	}
}
