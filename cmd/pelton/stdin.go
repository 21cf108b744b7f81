package main

import (
	"context"
	"io"
)

// interruptibleReader reads from what may wait for ever, as a terminal or a pipe does, until ctx ends. Its goroutine then stays in
// its Read until that returns, which nobody waits for: the process is about to end.
type interruptibleReader struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no room for it
	pieces chan piece
	left   []byte
	err    error
}

type piece struct {
	data []byte
	err  error
}

func newInterruptibleReader(ctx context.Context, in io.Reader) *interruptibleReader {
	r := &interruptibleReader{ctx: ctx, pieces: make(chan piece)}
	go func() {
		for {
			data := make([]byte, 64<<10)
			n, err := in.Read(data)
			select {
			case r.pieces <- piece{data[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return r
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 && r.err == nil {
		select {
		case next := <-r.pieces:
			r.left, r.err = next.data, next.err
		case <-r.ctx.Done():
			r.err = context.Cause(r.ctx)
		}
	}
	if len(r.left) == 0 {
		return 0, r.err
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}
