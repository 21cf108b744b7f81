package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ErrNotRunning is returned by what needs a running server.
var ErrNotRunning = errors.New("server is not running")

// Cluster is a private server with its data directory. It is safe for use by several goroutines.
type Cluster struct {
	config Config
	as     account
	lock   *lock

	mu     sync.Mutex // held over a start, a stop and a kill
	memory memory
	server *server // nil before the first start
	closed bool
}

// Start makes the data directory if needed, starts the server, and returns when it accepts connections. The context
// limits the start only. Call [Cluster.Stop] in the end.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	config, err := config.absolute()
	if err != nil {
		return nil, fmt.Errorf("server config: %w", err)
	}
	as, err := accountFor(config.OSUser)
	if err != nil {
		return nil, err
	}
	if err := prepare(config, as); err != nil {
		return nil, err
	}
	held, err := acquire(config.DataDir)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{config: config, as: as, lock: held}
	if err := cluster.startFirst(ctx); err != nil {
		held.release()
		return nil, err
	}
	return cluster, nil
}

func (c *Cluster) startFirst(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := c.limit(ctx)
	defer cancel()
	if err := ensureData(ctx, c.config, c.as); err != nil {
		return err
	}
	kept, err := readMemory(c.config.DataDir)
	if err != nil {
		return err
	}
	c.memory = kept
	return c.launch(ctx)
}

func (c *Cluster) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.config.StartTimeout,
		fmt.Errorf("not ready after %v; its log is %s", c.config.StartTimeout, c.config.LogFile))
}

// Restart stops the server if it runs (fast) and starts it again on the same port and data, also after a Kill or a
// Stop.
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		held, err := acquire(c.config.DataDir)
		if err != nil {
			return err
		}
		c.lock, c.closed = held, false
	}
	if err := c.halt(ctx); err != nil {
		return err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return c.launch(ctx)
}

// Stop shuts the server down in an orderly way; sessions are ended and what they had open is rolled back. When the
// context ends first the server is told to stop at once, and the context's cause is returned: the data is safe, the next
// start recovers it. Stopping twice is fine.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	err := c.halt(ctx)
	c.lock.release()
	c.closed = true
	return err
}

// Kill ends all processes of the server at once, as a crash would, and returns when the server has ended. Restart
// brings it back.
func (c *Cluster) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return fmt.Errorf("kill server: %w", ErrNotRunning)
	}
	if err := killAll(c.server.pid); err != nil {
		return fmt.Errorf("kill server: %w", err)
	}
	<-c.server.done
	return nil
}

// halt needs the mutex.
func (c *Cluster) halt(ctx context.Context) error {
	if !c.running() {
		return nil
	}
	if err := c.server.signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("stop server: %w", err)
	}
	select {
	case <-c.server.done:
		return nil
	case <-ctx.Done():
	}
	if err := c.server.signal(syscall.SIGQUIT); err != nil {
		return fmt.Errorf("stop server: %w", err)
	}
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	select {
	case <-c.server.done:
		return fmt.Errorf("stop server in order: %w", context.Cause(ctx))
	case <-patience.C:
	}
	if err := killAll(c.server.pid); err != nil {
		return fmt.Errorf("stop server: %w", err)
	}
	<-c.server.done
	return fmt.Errorf("stop server in order: %w", context.Cause(ctx))
}

// running needs the mutex.
func (c *Cluster) running() bool {
	if c.server == nil {
		return false
	}
	select {
	case <-c.server.done:
		return false
	default:
		return true
	}
}

// DSN returns the URL of a database for the superuser, over TCP.
func (c *Cluster) DSN(database string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dsn(database)
}

func (c *Cluster) dsn(database string) string {
	dsn := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Host:     "127.0.0.1:" + strconv.Itoa(c.memory.Port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	if c.memory.Password != "" {
		dsn.User = url.UserPassword(superuser, c.memory.Password)
	}
	return dsn.String()
}

// BinDir returns the directory of the server's programs.
func (c *Cluster) BinDir() string { return c.config.Binaries.Dir }

// Version returns the server's version, for example "15.14".
func (c *Cluster) Version() string { return c.config.Binaries.Version }

// Major returns the first number of the version.
func (c *Cluster) Major() int { return c.config.Binaries.Major }

// DataDir returns the absolute path of the data directory.
func (c *Cluster) DataDir() string { return c.config.DataDir }

// LogFile returns the absolute path of the server's log.
func (c *Cluster) LogFile() string { return c.config.LogFile }

// OSUser returns the operating system's user that the server runs as.
func (c *Cluster) OSUser() string { return c.as.name }

// Beside returns a command that runs as the server's user, in a process group of its own. On Linux it is interrupted when the
// thread that started it ends, at the latest with this process.
func (c *Cluster) Beside(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env, command.SysProcAttr = c.as.environment(), c.as.attributes()
	dieWithOwner(command.SysProcAttr)
	return command
}

// Port returns the TCP port on 127.0.0.1.
func (c *Cluster) Port() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory.Port
}

// SocketDir returns the directory of the server's Unix socket, for libpq's "host", or "" when the data directory's path
// is too long to hold one. Only root and the user that the server runs as can enter it.
func (c *Cluster) SocketDir() string { return c.config.socketDir() }

// maxSocketDir leaves room for "/.s.PGSQL.65535.lock" in the 104 bytes that every system allows.
const maxSocketDir = 80

func (c Config) socketDir() string {
	if len(c.DataDir) > maxSocketDir || filepath.Separator != '/' {
		return ""
	}
	return c.DataDir
}

// PID returns the process id of the postmaster, 0 when the server does not run.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return 0
	}
	return c.server.pid
}

// Done is closed when the present server process has ended, whether it was stopped or died by itself. After a Restart
// ask for a new one.
func (c *Cluster) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server.done
}

// CPUTime returns the processor time that the server's processes have used since its start, those that have ended
// included, in steps of 10 ms. Only Linux tells it: elsewhere the error is errors.ErrUnsupported.
func (c *Cluster) CPUTime() (time.Duration, error) {
	pid := c.PID()
	if pid == 0 {
		return 0, fmt.Errorf("processor time: %w", ErrNotRunning)
	}
	used, err := CPUTime(pid)
	if err != nil {
		return 0, fmt.Errorf("processor time: %w", err)
	}
	return used, nil
}
