package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// markVariable names the marks in the environment of a program and, as a rule, of all it starts. A worker that is itself started
// by a job adds its mark to the one it has.
const markVariable = "PELTON_MARK"

// mark says which worker started a program. After a restart of the machine nothing marked is left, so it need not name it.
type mark struct {
	realm     string // a hash of Config.Realm
	namespace string // of process numbers
	pid       int    // the worker's
	start     uint64
}

func (m mark) String() string {
	return fmt.Sprintf("%s:%s:%d:%d", m.realm, m.namespace, m.pid, m.start)
}

// parseMark reads what a run's mark begins with.
func parseMark(text string) (m mark, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 5 {
		return mark{}, false
	}
	pid, err := strconv.Atoi(parts[2])
	if err != nil {
		return mark{}, false
	}
	start, err := strconv.ParseUint(parts[3], 10, 64)
	return mark{parts[0], parts[1], pid, start}, err == nil
}

// thisWorker is this process in a mark, without a realm.
var thisWorker = sync.OnceValue(func() mark {
	self, _ := look(os.Getpid())
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return mark{namespace: strings.Trim(namespace, "pid:[]"), pid: os.Getpid(), start: self.start}
})

func hashOf(realm string) string {
	sum := sha256.Sum256([]byte(realm))
	return hex.EncodeToString(sum[:8])
}

// marksOf are those in the environment of a process, of which there are none if it may not be read or has ended.
func marksOf(pid int) []string {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(markVariable+"=")); ok {
			return strings.Fields(string(value))
		}
	}
	return nil
}

// A process may be given a new environment, and a zombie has none. So a run's processes have a second mark, a tag, in a resource
// limit that means nothing with a number as high as this: how long a real-time process may go without a pause. It passes to
// children, survives exec, and can be read until the process is reaped.
const (
	rlimitTag = 15 // RLIMIT_RTTIME
	minTag    = 1 << 62
)

func newTag() uint64 { return minTag + rand.Uint64N(1<<62) }

// setTag does nothing where the limit is in use. The process, 0 for this one, has its own limit again when undo is called.
func setTag(pid int, tag uint64) (undo func()) {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, rlimitTag, nil, &limit); err != nil || limit.Max <= tag {
		return func() {}
	}
	_ = unix.Prlimit(pid, rlimitTag, &unix.Rlimit{Cur: tag, Max: limit.Max}, nil)
	return func() { _ = unix.Prlimit(pid, rlimitTag, &limit, nil) }
}

// tagOf is 0 of a process that has none or belongs to somebody else.
func tagOf(pid int) uint64 {
	var limit unix.Rlimit
	if err := unix.Prlimit(pid, rlimitTag, nil, &limit); err != nil || limit.Cur < minTag || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}
