package command

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is what /proc tells of one. Its number may be given to another process once it has been reaped; number and start
// together are never.
type process struct {
	pid, parent, group int
	start              uint64 // ticks since the system's start
	flags              uint64
	ended              bool // a zombie: it waits for its parent to look at it
}

// census is all processes at one time. One that was started while it was taken may be missing.
type census struct {
	began    time.Time
	all      map[int]process
	children map[int][]int // by parent
}

// lastCensus is shared: when many runs end at once, they look at one census instead of taking one each.
var lastCensus struct {
	sync.Mutex
	census
}

// takeCensus returns a census begun at most so long before the call.
func takeCensus(age time.Duration) census {
	since := time.Now().Add(-age)
	lastCensus.Lock()
	defer lastCensus.Unlock()
	if !lastCensus.began.After(since) {
		lastCensus.census = newCensus()
	}
	return lastCensus.census
}

func newCensus() census {
	c := census{began: time.Now(), all: map[int]process{}, children: map[int][]int{}}
	proc, err := os.Open("/proc")
	if err != nil {
		return c
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(-1) // what came before an error counts
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			c.all[pid] = p
			c.children[p.parent] = append(c.children[p.parent], pid)
		}
	}
	return c
}

func look(pid int) (process, bool) {
	p, ok := lookAt(strconv.Itoa(pid))
	p.pid = pid
	return p, ok
}

// lookAt reads /proc/TASK/stat: "pid (name) state parent group ...", where the name may hold anything.
func lookAt(task string) (process, bool) {
	fd, err := unix.Open("/proc/"+task+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return process{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	var buffer [1024]byte
	n, err := unix.Read(fd, buffer[:])
	if err != nil || n <= 0 {
		return process{}, false
	}
	return parseStat(buffer[:n])
}

// Places of fields of /proc/PID/stat, counted from the one after the name.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statFlags   = 6
	statThreads = 17
	statStart   = 19
)

func parseStat(stat []byte) (p process, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= statStart {
		return process{}, false
	}
	number := func(field int) int {
		n, err := strconv.Atoi(string(fields[field]))
		ok = ok && err == nil
		return n
	}
	ok = true
	p = process{parent: number(statParent), group: number(statGroup), start: uint64(number(statStart)), flags: uint64(number(statFlags))}
	// A process whose first thread has ended looks like a zombie, but lives as long as another thread does.
	p.ended = bytes.ContainsAny(fields[statState], "ZXx") && number(statThreads) <= 1
	return p, ok
}

// still tells whether the number is this process's even now.
func (p process) still() bool {
	now, ok := look(p.pid)
	return ok && now.start == p.start
}

// signal sends signals to this process, never to another that has got its number since: where the kernel knows pidfds, the
// handle is opened first and the process compared then.
func (p process) signal(signals ...syscall.Signal) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Release() }()
	if !p.still() {
		return os.ErrProcessDone
	}
	for _, s := range signals {
		if err := handle.Signal(s); err != nil {
			return err
		}
	}
	return nil
}
