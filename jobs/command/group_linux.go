package command

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// attributes put a program into a group of its own, and have it killed when this process dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// holdThread keeps the thread that starts a program until the function it returns is called: the parent death signal is sent
// when that thread ends.
func holdThread() func() {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// adoptOrphans has the kernel give the orphans among this process's descendants to this process, for good. Every kernel that Go
// runs on can.
var adoptOrphans = sync.OnceFunc(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

// group is a program and all that descends from it: its process group, the children of what is known to be in it, and orphans
// that came to this process and carry the run's mark or tag. awaitExit is called once, reap after it has returned.
type group struct {
	process *os.Process
	mark    string
	tag     uint64
	log     *slog.Logger

	// Starts by pid.
	known  map[int]uint64 // members outside the process group, seen before
	alien  map[int]uint64 // of those the ones that this user may not signal
	killed map[int]uint64 // members that were sent SIGKILL

	reaping sync.Once
	state   *os.ProcessState
	err     error
}

// liveTags are the tags of programs that run in this process.
var liveTags sync.Map

func newGroup(realm string, log *slog.Logger) *group {
	adoptOrphans()
	worker := thisWorker()
	worker.realm = hashOf(realm)
	g := &group{tag: newTag(), log: log, known: map[int]uint64{}, alien: map[int]uint64{}, killed: map[int]uint64{}}
	g.mark = worker.String() + ":" + strconv.FormatUint(g.tag, 16)
	return g
}

// environ is the environment with the run's mark.
func (g *group) environ(env []string) []string {
	value := g.mark
	if outer := variable(env, markVariable); outer != "" {
		value = outer + " " + value
	}
	return append(slices.Clip(env), markVariable+"="+value)
}

func (g *group) start(cmd *exec.Cmd) error {
	liveTags.Store(g.tag, nil)
	if err := startTagged(cmd, g.tag); err != nil {
		liveTags.Delete(g.tag)
		return err
	}
	g.process = cmd.Process
	return nil
}

// awaitExit waits until the program has exited, without reaping it, so that its group keeps its number.
func (g *group) awaitExit() {
	for {
		if err := unix.Waitid(unix.P_PID, g.process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return
		}
	}
}

// reap returns how the program ended. From then on its group may lose its number.
func (g *group) reap() (*os.ProcessState, error) {
	g.reaping.Do(func() {
		g.state, g.err = g.process.Wait()
		liveTags.Delete(g.tag)
	})
	return g.state, g.err
}

// terminate asks all to end; a stopped process is let go on, so that it can.
func (g *group) terminate() { g.signal(g.members(0), syscall.SIGTERM, syscall.SIGCONT) }

// kill tells whether there were processes that it had not met before.
func (g *group) kill() (fresh bool) {
	members := g.members(0)
	g.signal(members, syscall.SIGKILL)
	for _, m := range members {
		if !m.ended && g.killed[m.pid] != m.start {
			g.killed[m.pid], fresh = m.start, true
		}
	}
	return fresh
}

// signal reaches the process group at once, also what is being forked in it, and each of the others by itself.
func (g *group) signal(members []process, signals ...syscall.Signal) {
	for _, s := range signals {
		_ = syscall.Kill(-g.process.Pid, s)
	}
	for _, m := range members {
		if m.ended || m.group == g.process.Pid || g.alien[m.pid] == m.start {
			continue
		}
		if err := m.signal(signals...); errors.Is(err, os.ErrPermission) {
			g.alien[m.pid] = m.start
			g.log.Warn("a process that left the program's group runs as another user, and is left alone", "pid", m.pid)
		}
	}
}

// alive tells whether something of the program still runs, itself aside. Zombies that are not ours to reap do not count.
func (g *group) alive() bool {
	alive, _ := g.left()
	return alive
}

// gone tells whether nothing is left. Where a look finds that something has just ended, it may have missed what that has just forked.
func (g *group) gone() bool {
	alive, ended := g.left()
	return !alive && (!ended || !g.alive())
}

// left tells whether something of the program still runs, and whether something has ended since the last look, itself aside.
func (g *group) left() (alive, ended bool) {
	for _, m := range g.members(0) {
		if m.pid != g.process.Pid && g.alien[m.pid] != m.start {
			alive, ended = alive || !m.ended, ended || m.ended
		}
	}
	if _, ok := look(os.Getpid()); ok || alive {
		return alive, ended
	}
	_, _ = g.reap() // without /proc there is only the group, and a zombie would count
	return syscall.Kill(-g.process.Pid, 0) != syscall.ESRCH, false
}

// tidy reaps orphans while the program runs.
func (g *group) tidy() { g.members(tidyPause) }

// members are all that descends from the program, and the program itself until it is reaped. Ended orphans of it are reaped on
// the way, each by its number: this process may have children that are somebody else's.
func (g *group) members(age time.Duration) []process {
	c := takeCensus(age)
	self := os.Getpid()
	var list []process
	for pid, p := range c.all {
		if p.group == g.process.Pid || g.known[pid] == p.start || p.parent == self && g.owns(pid) {
			list = append(list, p)
		}
	}
	in := map[int]bool{}
	for _, p := range list {
		in[p.pid] = true
	}
	for i := 0; i < len(list); i++ { // grows
		for _, pid := range c.children[list[i].pid] {
			if !in[pid] {
				in[pid] = true
				list = append(list, c.all[pid])
			}
		}
	}
	clear(g.known)
	for _, p := range list {
		switch {
		case p.ended && p.parent == self && p.pid != g.process.Pid && p.still():
			_ = unix.Waitid(unix.P_PID, p.pid, nil, unix.WEXITED|unix.WNOHANG, nil)
		case p.group != g.process.Pid:
			g.known[p.pid] = p.start
		}
	}
	return list
}

// owns tells whether a child of this process, which is not in the group, is an orphan of the program.
func (g *group) owns(pid int) bool {
	tag := tagOf(pid)
	if tag == g.tag {
		return isProgram(pid)
	}
	if _, other := liveTags.Load(tag); other {
		return false
	}
	return slices.Contains(marksOf(pid), g.mark)
}
