package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

const (
	outputLine  = 9        // bytes of each line that programs print: numbers from outputFirst on
	outputFirst = 10000000 // so many that all have eight digits
)

// printed is so many lines as the programs print them.
func printed(lines int) []byte {
	text := make([]byte, 0, lines*outputLine)
	for i := range lines {
		text = append(strconv.AppendInt(text, int64(outputFirst+i), 10), '\n')
	}
	return text
}

var gap = regexp.MustCompile(`\[\.\.\. (\d+) bytes of stdout not kept \.\.\.\]\n`)

// Programs print 1, 10 and 24 MB at once (100 MB with PELTON_SCENARIOS=full), one more prints without an end. The worker's memory
// stays bounded, other jobs run meanwhile, and of each output the beginning and the end are kept, byte for byte.
func TestLargeOutputs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	sizes := []int{1 << 20, 10 << 20, 24 << 20}
	if pgtest.FullSize() {
		sizes[2] = 100 << 20
	}
	w := s.launch("worker", "--queues", "default:4,others:4")
	w.started()
	s.waitState(s.command("echo first"), "completed")
	before := peakMemory(t, w)

	stop, _ := file(t, t.TempDir(), "stop")
	endless := s.command(fmt.Sprintf("while [ ! -e %s ]; do seq %d %d; done", stop, outputFirst, outputFirst+100_000))
	var ids []string
	for _, size := range sizes {
		ids = append(ids, s.command(fmt.Sprintf("seq %d %d", outputFirst, outputFirst+size/outputLine-1)))
	}
	s.waitState(endless, "running")
	for range 10 {
		s.waitState(s.command("echo other", "--queue", "others"), "completed")
	}
	if state := s.state(endless); state != "running" {
		t.Errorf("the program without an end is %s: the test shows nothing", state)
	}
	for _, id := range ids {
		s.waitState(id, "completed")
	}
	touch(t, stop)
	s.waitState(endless, "completed")
	t.Logf("peak memory %d MiB, before %d MiB", peakMemory(t, w)>>20, before>>20)
	if grown := peakMemory(t, w) - before; before > 0 && grown > 150<<20 {
		t.Errorf("the worker's memory grew by %d MiB", grown>>20)
	}
	for i, id := range ids {
		checkOutput(t, s.try("", "job", "logs", id), sizes[i]/outputLine)
	}
}

// checkOutput wants all lines, or the first 10 MiB and about the last, and to be told how much lies between.
func checkOutput(t *testing.T, read ran, lines int) {
	t.Helper()
	want, got := printed(lines), []byte(read.out)
	const part = 10 << 20
	skipped := 0
	if told := gap.FindStringSubmatch(read.err); told != nil {
		skipped, _ = strconv.Atoi(told[1])
	}
	most := min(len(want), 2*part+part/8+200_000)
	if len(got)+skipped != len(want) || len(got) < min(len(want), 2*part) || len(got) > most {
		t.Errorf("of %d bytes %d are kept, %d are said not to be: %s", len(want), len(got), skipped, read.err)
		return
	}
	head := min(len(want), part)
	if !bytes.Equal(got[:head], want[:head]) || !bytes.HasSuffix(want, got[head:]) {
		t.Errorf("head and tail of %d bytes hold others", len(want))
	}
}

var peakLine = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory is the most memory that a process has had, in bytes; 0 where /proc does not tell.
func peakMemory(t *testing.T, p *process) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	found := peakLine.FindSubmatch(text)
	if err != nil || found == nil {
		return 0
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
