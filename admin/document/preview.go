package document

import "github.com/peltonq/pelton/periodic"

// Preview are ticks to come. Its shape is fixed.
type Preview struct {
	Ticks []PreviewTick `json:"ticks"`
}

// PreviewTick is a tick to come.
type PreviewTick struct {
	At   string `json:"at" doc:"RFC 3339, in the schedule's time zone"`
	Note string `json:"note" doc:"empty, moved, dropped (gap) or dropped (repeat)"`
}

// NewPreview shows ticks to come.
func NewPreview(ticks []periodic.PreviewTick) Preview {
	p := Preview{Ticks: make([]PreviewTick, len(ticks))}
	for i, t := range ticks {
		p.Ticks[i] = PreviewTick{periodic.InZone(t.At, t.At.Location().String()), string(t.Note)}
	}
	return p
}
