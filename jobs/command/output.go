package command

import (
	"fmt"
	"io"
	"os"
	"time"
)

// output passes on what a program prints on one of its streams.
type output struct {
	read, write *os.File
	to          io.Writer
	last        *LastLines // may be nil
	done        chan struct{}
	started     bool
}

func capture(to io.Writer, last *LastLines) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return &output{read: r, write: w, to: to, last: last, done: make(chan struct{})}, nil
}

// start begins reading; the writing end belongs to the program from now on.
func (o *output) start() {
	o.started = true
	_ = o.write.Close()
	go o.pass()
}

// pass reads to the end. A log that takes nothing more must not stop the program, so the rest is read and thrown away then.
func (o *output) pass() {
	defer close(o.done)
	buffer := make([]byte, 32<<10)
	broken := false
	for {
		n, err := o.read.Read(buffer)
		if o.last != nil {
			o.last.add(buffer[:n])
		}
		if n > 0 && !broken {
			_, writeErr := o.to.Write(buffer[:n])
			broken = writeErr != nil
		}
		if err != nil {
			return
		}
	}
}

// stop ends the reading, though somebody may hold the pipe open still, and waits for it.
func (o *output) stop() {
	_ = o.read.SetReadDeadline(time.Now())
	<-o.done
}

// close frees what is open, also if the program was never started.
func (o *output) close() {
	if o.started {
		o.stop()
	} else {
		_ = o.write.Close()
	}
	_ = o.read.Close()
}
