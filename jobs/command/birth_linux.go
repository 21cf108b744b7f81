package command

import (
	"os/exec"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// A program has its tag from birth: children inherit their parent's limits, so this process has the tag itself for the moment of the
// start. What other code of this process starts in that moment has the tag too. It is told apart by what a child inherits from the
// thread that forks: the policy for a process whose memory is found broken. Programs have one that says in so many words
// what goes for this process anyway, or none where this process has one, as the program of another worker does. Nothing
// hangs on it but a flag in /proc/PID/stat.

// births go one by one, so that each program gets its own tag.
var births sync.Mutex

// policyFlag is the flag of a task with such a policy (PF_MCE_PROCESS).
const policyFlag = 0x80

func setPolicy(on bool) {
	if on {
		_ = unix.Prctl(unix.PR_MCE_KILL, unix.PR_MCE_KILL_SET, unix.PR_MCE_KILL_LATE, 0, 0)
	} else {
		_ = unix.Prctl(unix.PR_MCE_KILL, unix.PR_MCE_KILL_CLEAR, 0, 0, 0)
	}
}

func hasPolicy(task string) (has, ok bool) {
	p, ok := lookAt(task)
	return p.flags&policyFlag != 0, ok
}

// policies says whether this process has a policy, and whether that of a thread can be told here.
var policies = sync.OnceValue(func() (p struct{ own, told bool }) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const task = "thread-self"
	own, ok := hasPolicy(task)
	setPolicy(!own)
	changed, _ := hasPolicy(task)
	setPolicy(own)
	restored, _ := hasPolicy(task)
	p.own, p.told = own, ok && changed != own && restored == own
	return p
})

// isProgram tells a program and what descends from it from what other code of this process has started.
func isProgram(pid int) bool {
	has, ok := hasPolicy(strconv.Itoa(pid))
	return ok && (!policies().told || has != policies().own)
}

// startTagged starts a program that has the tag. Where policies cannot be told it gets the tag just after the start; where the limit
// is in use, none.
func startTagged(cmd *exec.Cmd, tag uint64) error {
	if !policies().told {
		err := cmd.Start()
		if err == nil {
			setTag(cmd.Process.Pid, tag)
		}
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	births.Lock()
	defer births.Unlock()
	setPolicy(!policies().own)
	defer setPolicy(policies().own)
	defer setTag(0, tag)()
	return cmd.Start()
}
