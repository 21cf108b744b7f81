package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithOwner has the kernel send the child a signal when the thread that started it ends.
func dieWithOwner(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGINT }

// isServerOf tells whether a living process is a server on the data directory. In doubt it is.
func isServerOf(pid int, dataDir string) bool {
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		return err != nil || strings.HasPrefix(string(name), "postgres") || strings.HasPrefix(string(name), "postmaster")
	}
	wanted, err := filepath.EvalSymlinks(dataDir)
	return err != nil || dir == wanted
}

// procStat is a line of /proc/PID/stat.
type procStat struct {
	state        string // one letter: "Z" is a zombie
	parent       int
	own, reaped  time.Duration
	reapedChange string // utime and stime of reaped children as they stand there, to see them change
}

// clockTick is the unit of times in /proc: USER_HZ is 100 on every architecture that Go runs on.
const clockTick = time.Second / 100

func readStat(pid int) (procStat, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return procStat{}, err
	}
	// The second field is the program's name in parentheses and may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return procStat{}, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	numbers := map[int]int{1: 0, 11: 0, 12: 0, 13: 0, 14: 0}
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(fields[i]); err != nil {
			return procStat{}, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
	}
	return procStat{
		state:        fields[0],
		parent:       numbers[1],
		own:          time.Duration(numbers[11]+numbers[12]) * clockTick,
		reaped:       time.Duration(numbers[13]+numbers[14]) * clockTick,
		reapedChange: fields[13] + " " + fields[14],
	}, nil
}

// children returns the living children of a process with their times.
func children(parent int) (map[int]procStat, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	found := map[int]procStat{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			continue // ended meanwhile
		case err != nil:
			return nil, err
		}
		if stat.parent == parent {
			found[pid] = stat
		}
	}
	return found, nil
}

// CPUTime is the processor time that a process and its children have used. A child that ends in between would be missed or counted twice, so the sum is
// taken again when the parent has reaped one meanwhile.
func CPUTime(pid int) (time.Duration, error) {
	for {
		before, err := readStat(pid)
		if err != nil {
			return 0, err
		}
		living, err := children(pid)
		if err != nil {
			return 0, err
		}
		after, err := readStat(pid)
		if err != nil {
			return 0, err
		}
		if before.reapedChange != after.reapedChange {
			continue
		}
		sum := after.own + after.reaped
		for _, child := range living {
			sum += child.own + child.reaped
		}
		return sum, nil
	}
}

// killAll ends a server and all its processes at once, as a power cut would. The postmaster is halted first, so that it
// cannot start or restart anything, and killed last, when nothing of the others is left.
func killAll(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	living, err := children(pid)
	for child := range living {
		if killErr := syscall.Kill(child, syscall.SIGKILL); killErr != nil && !errors.Is(killErr, syscall.ESRCH) {
			err = errors.Join(err, killErr)
		}
	}
	return errors.Join(err, awaitEnd(living), syscall.Kill(pid, syscall.SIGKILL))
}

// awaitEnd waits until killed processes are gone or zombies, which hold no memory any more.
func awaitEnd(pids map[int]procStat) error {
	interval := time.NewTicker(time.Millisecond)
	defer interval.Stop()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for pid := range pids {
		for {
			stat, err := readStat(pid)
			if err != nil || stat.state == "Z" || stat.state == "X" {
				break
			}
			select {
			case <-interval.C:
			case <-deadline.C:
				return fmt.Errorf("process %d does not end", pid)
			}
		}
	}
	return nil
}

// removeSegment frees a System V shared memory segment. It may be gone already.
func removeSegment(id int) { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }
