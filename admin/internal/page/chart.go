package page

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// layer is one of the parts that a chart's bars are made of, from below.
type layer struct {
	Class  string // of its colour
	Name   string
	Values []float64
}

// Charts have so many units, whatever their size on the page: their words are beside them.
const (
	chartW, chartH  = 600, 120
	sparkW, sparkH  = 144, 28
	maxChartBuckets = 400
)

// bars draws stacked bars. The scale's top, the beginning and the end are written beside it.
func bars(label string, layers []layer, top func(float64) string, from, to time.Time) template.HTML {
	most := highest(layers)
	var out strings.Builder
	out.WriteString(`<div class="scale"><span>` + template.HTMLEscapeString(top(most)) + `</span></div>`)
	draw(&out, "chart", label, layers, most, chartW, chartH)
	out.WriteString(`<div class="scale"><span>` + from.UTC().Format("15:04") + `</span><span>` + to.UTC().Format("15:04") + ` UTC</span></div>`)
	return template.HTML(out.String()) //nolint:gosec // what is no number is escaped above
}

// spark draws stacked bars without words, for a cell of a table.
func spark(label string, layers []layer) template.HTML {
	var out strings.Builder
	draw(&out, "spark", label, layers, highest(layers), sparkW, sparkH)
	return template.HTML(out.String()) //nolint:gosec // what is no number is escaped below
}

func draw(out *strings.Builder, class, label string, layers []layer, most float64, width, height int) {
	fmt.Fprintf(out, `<svg class="%s" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" aria-label="%s">`, class, width, height, template.HTMLEscapeString(label))
	writeBars(out, layers, most, width, height-1)
	fmt.Fprintf(out, `<path class="axis" d="M0 %d.5H%d"/></svg>`, height-1, width)
}

// highest is the height of the highest bar; 0 if there is nothing.
func highest(layers []layer) (most float64) {
	for i := range length(layers) {
		sum := 0.0
		for _, l := range layers {
			sum += l.Values[i]
		}
		most = max(most, sum)
	}
	return most
}

func length(layers []layer) int {
	if len(layers) == 0 {
		return 0
	}
	return min(len(layers[0].Values), maxChartBuckets)
}

// writeBars writes a path for each layer: small, however many bars there are.
func writeBars(svg *strings.Builder, layers []layer, most float64, width, height int) {
	if most <= 0 {
		return
	}
	n := length(layers)
	step := float64(width) / float64(n)
	base := make([]float64, n)
	number := func(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
	for _, l := range layers {
		var path strings.Builder
		for i, v := range l.Values[:n] {
			if v <= 0 {
				continue
			}
			high := max(v/most*float64(height), 0.7) // what is there is seen
			y := float64(height) - base[i] - high
			base[i] += high
			fmt.Fprintf(&path, "M%s %sh%sv%sh-%sz", number(float64(i)*step), number(max(y, 0)), number(step*0.86), number(high), number(step*0.86))
		}
		if path.Len() > 0 {
			fmt.Fprintf(svg, `<path class="fill-%s" d="%s"/>`, l.Class, path.String())
		}
	}
}

// percentile is the wait, in seconds, that a share of the counted waits does not exceed; false: there are none. counts are those of
// queue_tally: below 1 ms, 2 ms, 4 ms and so on. Within a bucket, waits are taken to be spread evenly.
func percentile(share float64, counts []int64) (seconds float64, ok bool) {
	var total int64
	for _, n := range counts {
		total += n
	}
	if total == 0 {
		return 0, false
	}
	rest := share * float64(total)
	for i, n := range counts {
		if float64(n) < rest {
			rest -= float64(n)
			continue
		}
		low, high := 0.0, math.Exp2(float64(i))
		if i > 0 {
			low = high / 2
		}
		return (low + (high-low)*rest/float64(n)) / 1000, true
	}
	return math.Exp2(float64(len(counts)-1)) / 1000, true
}

// addCounts adds b to a.
func addCounts(a, b []int64) []int64 {
	if len(a) < len(b) {
		a = append(a, make([]int64, len(b)-len(a))...)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}

// sum adds up values.
func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// lasting returns the last n values.
func lasting(values []float64, n int) []float64 { return slices.Clone(values[max(0, len(values)-n):]) }
