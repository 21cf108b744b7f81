package command

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leftoversLimit bounds the wait for processes that do not even end when killed, in a system call that hangs say.
const leftoversLimit = 10 * time.Second

// swept are the realms whose leftovers were looked for.
var swept = struct {
	sync.Mutex
	realms map[string]*sync.Once
}{realms: map[string]*sync.Once{}}

// EndLeftovers ends what the programs of killed workers of the config's realm have left running on this host, under this user, and
// waits until it has gone. It does so once in a process: later calls wait for the first. A worker calls it before its first
// program; who calls it before a client starts spares the first jobs the wait, and ends leftovers that no job would.
func EndLeftovers(ctx context.Context, config Config, log *slog.Logger) {
	config = config.withDefaults()
	swept.Lock()
	once := swept.realms[config.Realm]
	if once == nil {
		once = new(sync.Once)
		swept.realms[config.Realm] = once
	}
	swept.Unlock()
	once.Do(func() {
		if n := endLeftovers(hashOf(config.Realm), config.KillGrace); n > 0 {
			log.WarnContext(ctx, "ended processes that a killed worker had left running", "processes", n)
		}
	})
}

// endLeftovers returns how many processes there were. SIGTERM is sent once to each, SIGKILL from the end of the grace on.
func endLeftovers(realm string, grace time.Duration) int {
	asked := map[int]uint64{}
	began := time.Now()
	for empty := 0; empty < 2; {
		left := leftovers(realm)
		if len(left) == 0 {
			empty++
			continue
		}
		empty = 0
		kill := time.Since(began) >= grace
		for _, p := range left {
			switch {
			case kill:
				_ = p.signal(syscall.SIGKILL)
			case asked[p.pid] != p.start:
				_ = p.signal(syscall.SIGTERM, syscall.SIGCONT)
			}
			asked[p.pid] = p.start
		}
		if time.Since(began) >= grace+leftoversLimit {
			break
		}
		<-time.After(lookPause)
	}
	return len(asked)
}

// leftovers are the living processes of this user that carry the mark of a worker that is no more, and what descends from them;
// never this process and those that it descends from.
func leftovers(realm string) []process {
	c := takeCensus(0)
	ours := map[int]bool{}
	for pid := os.Getpid(); pid != 0 && !ours[pid]; pid = c.all[pid].parent {
		ours[pid] = true
	}
	dead := map[mark]bool{}
	var list []process
	in := map[int]bool{}
	for pid, p := range c.all {
		if !ours[pid] && !p.ended && ownUser(pid) && abandoned(pid, realm, dead) {
			in[pid] = true
			list = append(list, p)
		}
	}
	for i := 0; i < len(list); i++ { // grows
		for _, pid := range c.children[list[i].pid] {
			if p := c.all[pid]; !in[pid] && !ours[pid] && !p.ended && ownUser(pid) {
				in[pid] = true
				list = append(list, p)
			}
		}
	}
	return list
}

// abandoned tells whether a process carries the mark of a dead worker. dead remembers which ones are.
func abandoned(pid int, realm string, dead map[mark]bool) bool {
	for _, text := range marksOf(pid) {
		m, ok := parseMark(text)
		if !ok || m.realm != realm || m.namespace != thisWorker().namespace {
			continue
		}
		if _, known := dead[m]; !known {
			worker, found := look(m.pid)
			dead[m] = !found || worker.start != m.start || worker.ended
		}
		if dead[m] {
			return true
		}
	}
	return false
}

func ownUser(pid int) bool {
	var stat unix.Stat_t
	return unix.Stat("/proc/"+strconv.Itoa(pid), &stat) == nil && int(stat.Uid) == os.Geteuid()
}
