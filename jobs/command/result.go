package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Result is the output of a command job's run.
type Result struct {
	ExitCode int     `json:"exit_code"`         // of the last program; 128 + the signal's number if a signal ended it
	Signal   string  `json:"signal,omitempty"`  // the signal that ended it, as "SIGKILL"
	Seconds  float64 `json:"duration_seconds"`  // of the whole run
	Command  int     `json:"command,omitempty"` // with several commands: the last one run, from 1
}

// ExitError says that a program did not exit with 0.
type ExitError struct {
	Program  string
	ExitCode int
	Signal   string // empty unless a signal ended the program
	Stderr   string // its last lines
}

// LastLinesFollow is what the text of an ExitError has before the program's last lines on stderr, which are its end.
const LastLinesFollow = "; its last lines on stderr:\n"

func (e *ExitError) Error() string {
	how := fmt.Sprintf("exited with code %d", e.ExitCode)
	if e.Signal != "" {
		how = "was ended by " + e.Signal
	}
	if e.Stderr == "" {
		return fmt.Sprintf("program %q %s", e.Program, how)
	}
	return fmt.Sprintf("program %q %s%s%s", e.Program, how, LastLinesFollow, e.Stderr)
}

func (r *Result) take(state *os.ProcessState) {
	r.ExitCode, r.Signal = outcome(state)
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

const (
	lastBytes = 4 << 10
	lastLines = 10
)

// LastLines keeps the last lines of what is written, as they are told in an ExitError.
type LastLines struct {
	data []byte
	cut  bool
}

func (l *LastLines) add(p []byte) {
	l.data = append(l.data, p...)
	if over := len(l.data) - lastBytes; over > 0 {
		l.cut = true
		l.data = append(l.data[:0], l.data[over:]...)
	}
}

// Tee returns a writer to both.
func (l *LastLines) Tee(to io.Writer) io.Writer { return &tee{l, to} }

type tee struct {
	last *LastLines
	to   io.Writer
}

func (t *tee) Write(p []byte) (int, error) {
	t.last.add(p)
	return t.to.Write(p)
}

// String returns the last lines as text that any database takes.
func (l *LastLines) String() string {
	data := bytes.TrimRight(l.data, "\r\n")
	lines := bytes.Split(data, []byte("\n"))
	if l.cut && len(lines) > 1 {
		lines = lines[1:] // only a part of it is known
	}
	lines = lines[max(0, len(lines)-lastLines):]
	text := strings.ToValidUTF8(string(bytes.Join(lines, []byte("\n"))), "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}
