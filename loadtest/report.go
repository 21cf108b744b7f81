package loadtest

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
)

// Report is the result of [Drain].
type Report struct {
	Scenario  string                  `json:"scenario"`
	Pin       bool                    `json:"pin"`
	PinWriter bool                    `json:"pin_writer"`
	Jobs      int                     `json:"jobs"`
	Rounds    int                     `json:"rounds"`
	Postgres  string                  `json:"postgres"`
	Engines   map[string]EngineReport `json:"engines"`
	// Ratio is pelton / river, the median of the rounds' ratios. Nil unless both ran.
	Ratio *Ratio `json:"ratio,omitempty"`
}

// EngineReport holds the medians of an engine's rounds, and their range.
type EngineReport struct {
	Figures

	Min     Figures `json:"min"`
	Max     Figures `json:"max"`
	Workers int     `json:"workers"` // at once
	Batch   int     `json:"batch"`   // jobs per bulk insert
}

// Ratio compares Pelton with River: insert and work want to be large, the rest small.
type Ratio struct {
	Insert        float64 `json:"insert"`
	Work          float64 `json:"work"`
	WAL           float64 `json:"wal"`
	ClientCPUWork float64 `json:"client_cpu_work"`
	ServerCPUWork float64 `json:"server_cpu_work"`
}

// figureNames and their places, for tables and for taking medians.
var figureNames = []struct {
	text   string
	format string
	of     func(*Figures) *float64
}{
	{"insert/s", "%.0f", func(f *Figures) *float64 { return &f.InsertPerSecond }},
	{"work/s", "%.0f", func(f *Figures) *float64 { return &f.WorkPerSecond }},
	{"WAL bytes/job", "%.0f", func(f *Figures) *float64 { return &f.WALBytesPerJob }},
	{"client CPU us/job, insert", "%.2f", func(f *Figures) *float64 { return &f.ClientCPUInsert }},
	{"client CPU us/job, work", "%.2f", func(f *Figures) *float64 { return &f.ClientCPUWork }},
	{"server CPU us/job, insert", "%.2f", func(f *Figures) *float64 { return &f.ServerCPUInsert }},
	{"server CPU us/job, work", "%.2f", func(f *Figures) *float64 { return &f.ServerCPUWork }},
}

// summarize makes an engine's report from its rounds, of which there is at least one.
func summarize(rounds []Figures) EngineReport {
	var r EngineReport
	for _, name := range figureNames {
		values := make([]float64, 0, len(rounds))
		for i := range rounds {
			values = append(values, *name.of(&rounds[i]))
		}
		*name.of(&r.Figures) = rounded(median(values))
		*name.of(&r.Min) = rounded(slices.Min(values))
		*name.of(&r.Max) = rounded(slices.Max(values))
	}
	return r
}

// compare takes the ratios within each round, so that what slowed one round down does not count twice.
func compare(pelton, river []Figures) *Ratio {
	ratio := func(of func(*Figures) *float64) float64 {
		var values []float64
		for i := range pelton {
			if below := *of(&river[i]); below > 0 {
				values = append(values, *of(&pelton[i])/below)
			}
		}
		return rounded(median(values))
	}
	return &Ratio{
		Insert:        ratio(func(f *Figures) *float64 { return &f.InsertPerSecond }),
		Work:          ratio(func(f *Figures) *float64 { return &f.WorkPerSecond }),
		WAL:           ratio(func(f *Figures) *float64 { return &f.WALBytesPerJob }),
		ClientCPUWork: ratio(func(f *Figures) *float64 { return &f.ClientCPUWork }),
		ServerCPUWork: ratio(func(f *Figures) *float64 { return &f.ServerCPUWork }),
	}
}

// median of any values; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// rounded keeps three decimals.
func rounded(v float64) float64 { return math.Round(v*1000) / 1000 }

// table prints the report for people.
func (r *Report) table(out io.Writer, order []engine) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(cells ...any) {
		for _, c := range cells {
			_, _ = fmt.Fprintf(w, "%v\t", c) // the writer keeps its first error for Flush
		}
		_, _ = fmt.Fprintln(w)
	}
	head := []any{""}
	for _, e := range order {
		head = append(head, e.name(), "(min - max)")
	}
	line(head...)
	for _, name := range figureNames {
		cells := []any{name.text}
		for _, e := range order {
			of := r.Engines[e.name()]
			value := func(f *Figures) string { return fmt.Sprintf(name.format, *name.of(f)) }
			cells = append(cells, value(&of.Figures), "("+value(&of.Min)+" - "+value(&of.Max)+")")
		}
		line(cells...)
	}
	cells := []any{"workers"}
	for _, e := range order {
		cells = append(cells, r.Engines[e.name()].Workers, "")
	}
	line(cells...)
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Ratio == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, "pelton / river: insert %.2f x, work %.2f x, WAL 1/%.1f, client CPU 1/%.1f, server CPU 1/%.1f\n",
		r.Ratio.Insert, r.Ratio.Work, 1/r.Ratio.WAL, 1/r.Ratio.ClientCPUWork, 1/r.Ratio.ServerCPUWork)
	return err
}
