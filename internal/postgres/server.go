package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	maxLogSize    = 16 << 20
	portAttempts  = 5
	readyInterval = 5 * time.Millisecond
)

var (
	// errPortTaken says that somebody took the port between the look and the start.
	errPortTaken = errors.New("port was taken meanwhile")
	// errOrphans says that backends of a postmaster that was killed still run. They end soon.
	errOrphans = errors.New("processes of the last server still run")
)

// server is one life of a server process. done is closed by the goroutine that started it and waits for it.
type server struct {
	pid     int
	process *os.Process
	done    chan struct{}
}

func (s *server) signal(signal os.Signal) error {
	err := s.process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// prepare makes the directories around the data directory and checks that the account can reach everything.
func prepare(config Config, as account) error {
	for _, dir := range []string{filepath.Dir(config.DataDir), filepath.Dir(config.LogFile)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("server directory: %w", err)
		}
	}
	if !as.switched {
		return nil
	}
	if err := as.canReach(config.Binaries.Dir); err != nil {
		return fmt.Errorf("server programs: %w", err)
	}
	if err := as.canReach(config.DataDir); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// launch starts the server and waits until it is ready. It needs the cluster's mutex.
func (c *Cluster) launch(ctx context.Context) error {
	if err := checkPidfile(ctx, c.config.DataDir); err != nil {
		return err
	}
	again := c.server != nil // a restart keeps its port: clients know it
	wanted := c.config.Port
	if again || wanted == 0 {
		wanted = c.memory.Port
	}
	for attempt := 1; ; attempt++ {
		port, err := freePort(ctx, wanted)
		if err != nil {
			return fmt.Errorf("start server: %w", err)
		}
		if again && port != wanted {
			return fmt.Errorf("start server on port %d: %w", wanted, errPortTaken)
		}
		if port != c.memory.Port {
			c.memory.Port = port
			if err := writeMemory(c.config.DataDir, c.memory, c.as); err != nil {
				return err
			}
		}
		err = c.launchPastOrphans(ctx, port)
		if err == nil || !errors.Is(err, errPortTaken) || attempt == portAttempts || again {
			return err
		}
		wanted = 0
	}
}

// launchPastOrphans starts the server, again and again while backends of its predecessor hold their memory: each of them
// ends when it sees that its postmaster is gone, which a busy one does late.
func (c *Cluster) launchPastOrphans(ctx context.Context, port int) error {
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for {
		err := c.launchOn(ctx, port)
		if !errors.Is(err, errOrphans) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (c *Cluster) launchOn(ctx context.Context, port int) error {
	output, start, err := openLog(c.config.LogFile)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }() // the server has its own descriptor
	//nolint:noctx // the server outlives the context of its start
	command := exec.Command(c.config.Binaries.path("postgres"), c.config.arguments(port, c.config.socketDir())...)
	command.Dir = c.config.DataDir
	command.Env = c.as.environment()
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = c.as.attributes()
	if c.config.DieWithOwner {
		dieWithOwner(command.SysProcAttr)
	}
	started, err := spawn(command)
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	c.server = started
	err = c.awaitReady(ctx)
	if err == nil {
		return nil
	}
	_ = started.signal(syscall.SIGQUIT)
	<-started.done
	said := tail(c.config.LogFile, start)
	if strings.Contains(said, "could not bind IPv4 address") || strings.Contains(said, "could not create any TCP/IP sockets") {
		return fmt.Errorf("start server on port %d: %w: %s", port, errPortTaken, said)
	}
	if strings.Contains(said, "pre-existing shared memory block") {
		err = errOrphans
	}
	return fmt.Errorf("start server: %w: %s", err, said)
}

// spawn starts a process from a thread of its own, which stays until the process has ended: the kernel's signal at the
// owner's death is bound to the thread that started the child.
func spawn(command *exec.Cmd) (*server, error) {
	started := &server{done: make(chan struct{})}
	outcome := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := command.Start()
		if err == nil {
			started.process, started.pid = command.Process, command.Process.Pid
		}
		outcome <- err
		if err != nil {
			return
		}
		_ = command.Wait() // how it ended stands in its log
		close(started.done)
	}()
	if err := <-outcome; err != nil {
		return nil, err
	}
	return started, nil
}

// awaitReady waits for the word "ready" in postmaster.pid, then asks for a session, which also checks the password.
func (c *Cluster) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		found, err := readPidfile(c.config.DataDir)
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if found != nil && found.pid == c.server.pid && found.status == "ready" {
			break
		}
		select {
		case <-tick.C:
		case <-c.server.done:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	session, err := pgx.Connect(ctx, c.dsn("postgres"))
	if err != nil {
		return fmt.Errorf("first connection: %w", err)
	}
	return session.Close(ctx)
}

// freePort returns the wanted port if nobody listens on it, else another. It stays below the range from which systems
// take the ports of outgoing connections, one of which could sit on the port when the server restarts.
func freePort(ctx context.Context, wanted int) (int, error) {
	const first, count, attempts = 20000, 12000, 100
	var failure error
	for range attempts {
		if wanted == 0 {
			wanted = first + rand.IntN(count)
		}
		if failure = tryPort(ctx, wanted); failure == nil {
			return wanted, nil
		}
		wanted = 0
	}
	return 0, fmt.Errorf("find a free port: %w", failure)
}

func tryPort(ctx context.Context, port int) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return listener.Close()
}

// openLog opens the log for appending and returns where this start's part begins.
func openLog(path string) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, fmt.Errorf("server log: %w", err)
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("server log: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, 0, fmt.Errorf("server log: %w", err)
	}
	return file, info.Size(), nil
}

// tail returns the end of the log, at most what was written since start, for an error message.
func tail(path string, start int64) string {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < start {
		return "see " + path
	}
	text = text[start:]
	const most = 2000
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return strings.TrimSpace(string(text))
}
