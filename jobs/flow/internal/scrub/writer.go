package scrub

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
)

// Writer passes on what is not in its set. Not safe for concurrent use.
type Writer struct {
	set    *Set
	to     io.Writer
	held   []byte // not passed on yet
	hidden int    // how many bytes of its beginning belong to what is taken out
	starry bool   // the last that was written is stars for something that may go on
}

// Writer makes a writer to another one. Close passes on what it still holds.
func (s *Set) Writer(to io.Writer) *Writer { return &Writer{set: s, to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.set == nil || len(w.set.forms) == 0 {
		return w.to.Write(p)
	}
	w.held = append(w.held, p...)
	if err := w.pass(w.sure()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close passes on all that is held. The writer below stays open.
func (w *Writer) Close() error { return w.pass(len(w.held)) }

// sure is how many of the held bytes no form can begin at that is not held whole: the first that is not sure is the beginning of an end
// that a form begins with.
func (w *Writer) sure() int {
	sure := len(w.held)
	for _, form := range w.set.forms {
		for at := max(0, len(w.held)-len(form)+1); at < sure; at++ {
			next := bytes.IndexByte(w.held[at:sure], form[0])
			if next < 0 {
				break
			}
			if at += next; bytes.HasPrefix(form, w.held[at:]) {
				sure = at
			}
		}
	}
	return sure
}

// pass writes the first n bytes that are held, with stars for what is hidden, and holds the rest.
func (w *Writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	hide := w.spans()
	var out []byte
	at := 0
	for at < n {
		if len(hide) > 0 && hide[0].from <= at {
			if !w.starry {
				out = append(out, Stars...)
			}
			w.starry = true
			at = min(n, hide[0].to)
			if at == hide[0].to {
				hide = hide[1:]
				w.starry = false
			}
			continue
		}
		w.starry = false
		end := n
		if len(hide) > 0 {
			end = min(end, hide[0].from)
		}
		out = append(out, w.held[at:end]...)
		at = end
	}
	w.hidden = 0
	if len(hide) > 0 && hide[0].from < n {
		w.hidden = hide[0].to - n
	}
	w.held = append(w.held[:0], w.held[n:]...)
	if len(out) == 0 {
		return nil
	}
	wrote, err := w.to.Write(out)
	if err == nil && wrote < len(out) {
		err = errors.New("short write")
	}
	return err
}

// span is a part of what is held.
type span struct{ from, to int }

// spans are the parts that are to be hidden, in their order; those that overlap are one.
func (w *Writer) spans() []span {
	var all []span
	if w.hidden > 0 {
		all = append(all, span{0, w.hidden})
	}
	for _, form := range w.set.forms {
		for at := 0; ; {
			next := bytes.Index(w.held[at:], form)
			if next < 0 {
				break
			}
			at += next
			all = append(all, span{at, at + len(form)})
			at++
		}
	}
	return merge(all)
}

func merge(all []span) (merged []span) {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		if n := len(merged); n > 0 && s.from < merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
		} else {
			merged = append(merged, s)
		}
	}
	return merged
}
