package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/peltonq/pelton/internal/quantity"
)

// progress is a bar on a terminal, and nothing elsewhere.
type progress struct {
	bar *progressbar.ProgressBar // nil: no terminal
}

// progress shows how much of a file of size bytes was read; -1: not known.
func (a *app) progress(size int64) *progress {
	if a.json || !isTerminal(a.stderr) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(a.stderr), progressbar.OptionShowBytes(true), progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription("enqueue"), progressbar.OptionFullWidth())}
}

func (p *progress) read(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // what a terminal does not take is no reason to stop
	}
}

func (p *progress) enqueued(jobs int) {
	if p.bar != nil {
		p.bar.Describe(quantity.Of(jobs, "job"))
	}
}

func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
