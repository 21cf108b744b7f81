package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/loadtest"
)

func (a *app) pages() *cobra.Command {
	var c loadtest.PagesConfig
	cmd := &cobra.Command{
		Use: "pages", Short: "Measure the page and the API on a database that holds many jobs", Args: arguments(cobra.NoArgs),
		Example: "  pelton loadtest pages --finished 20000000 --ready 1000000",
	}
	f := cmd.Flags()
	f.StringVar(&c.PGBin, "postgres-bin", "", "`directory` of PostgreSQL's programs (default: looked for)")
	f.IntVar(&c.Finished, "finished", 0, "jobs that have ended, over the last seven days (default 1000000)")
	f.IntVar(&c.Ready, "ready", 0, "jobs in the line (default 100000)")
	f.IntVar(&c.Nodes, "nodes", 0, "nodes of the large flow (default 4000)")
	f.IntVar(&c.LogBytes, "log-bytes", 0, "bytes of the long log (default 100000000)")
	f.IntVar(&c.Reads, "reads", 0, "how often each page is read; the first two do not count (default 20)")
	f.IntVar(&c.Viewers, "viewers", 0, "viewers of the overview (default 10)")
	f.IntVar(&c.Rounds, "rounds", 0, "rounds with viewers, each between two without (default 5)")
	f.DurationVar(&c.For, "for", 0, "how long a round is measured (default 30s)")
	c.Serve = a.servePages
	cmd.RunE = a.measure(f, func(ctx context.Context, out io.Writer) (any, error) { return loadtest.Pages(ctx, c, out) },
		"finished", "ready", "nodes", "log-bytes", "reads", "viewers", "rounds", "for")
	return cmd
}

// servePages runs this program as a server on a database, in a process of its own, without users.
func (a *app) servePages(ctx context.Context, databaseURL string) (server loadtest.PageServer, err error) {
	self, err := os.Executable()
	if err != nil {
		return server, err
	}
	//nolint:gosec // this program
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, "server", "--worker", "--queues", "live:2", "--listen", "127.0.0.1:0", "--json")
	cmd.Env = append(os.Environ(), "DATABASE_URL="+databaseURL, "PELTON_SCHEMA=")
	cmd.Stderr = a.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return server, err
	}
	ended, err := startOwned(cmd)
	if err != nil {
		return server, err
	}
	stop := func() error {
		defer ended()
		return errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	}
	var info started
	if err := json.NewDecoder(out).Decode(&info); err != nil {
		return server, errors.Join(fmt.Errorf("the server did not start: %w", err), stop())
	}
	return loadtest.PageServer{URL: info.Endpoint, CPU: func() (time.Duration, error) { return postgres.CPUTime(cmd.Process.Pid) }, Stop: stop}, nil
}

// startOwned starts a child that does not outlive this process, however this ends. The kernel's signal at the owner's death is bound to the thread
// that started the child: one is held until ended is called, after Wait.
func startOwned(cmd *exec.Cmd) (ended func(), err error) {
	cmd.SysProcAttr = dieWithOwner()
	started, hold := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		started <- cmd.Start()
		<-hold
	}()
	if err := <-started; err != nil {
		close(hold)
		return nil, err
	}
	return sync.OnceFunc(func() { close(hold) }), nil
}
