package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
)

// devDir is a data directory that is not there yet.
func devDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(pgtest.Dir(t), "dev")
}

// dev is a pelton dev with a data directory of the test's.
type dev struct {
	*process

	dir  string
	info map[string]any
}

func devEnvironment(dir string) []string {
	env := []string{"PELTON_DATA_DIR=" + dir}
	if bin := os.Getenv("PELTON_TEST_PG_BIN"); bin != "" {
		env = append(env, "PATH="+bin+":"+os.Getenv("PATH"))
	}
	return env
}

func launchDev(t *testing.T, dir string, args ...string) *dev {
	t.Helper()
	args = append([]string{"dev", "--json", "--listen", "127.0.0.1:0"}, append(args, quick...)...)
	p := launch(t, devEnvironment(dir), args...)
	return &dev{p, dir, p.started()}
}

// shell finds the database as another terminal would.
func (d *dev) shell() *shell {
	d.t.Helper()
	return &shell{t: d.t, url: fmt.Sprint(d.info["database_url"]), env: map[string]string{"PELTON_DATA_DIR": d.dir}}
}

// stop ends it as Ctrl-C does.
func (d *dev) stop() {
	d.t.Helper()
	d.signal(syscall.SIGINT)
	if code := d.exit(); code != exitOK {
		d.t.Errorf("exit code of pelton dev is %d", code)
	}
}

func TestDev(t *testing.T) {
	t.Parallel()
	dir := devDir(t)
	d := launchDev(t, dir)
	fields(t, d.info, "event", "client", "endpoint", "database_url", "data_dir", "server_log", "postgres", "kinds")
	if get(t, fmt.Sprint(d.info["endpoint"], "/readyz")) != 200 {
		t.Error("the endpoint is not ready")
	}
	s := d.shell()
	id := s.command("echo hello; echo oops >&2", "--tag", "try")
	s.waitState(id, "completed")
	if out := s.ok("job", "logs", id, "--stream", "stdout"); out != "hello\n" {
		t.Errorf("log is %q", out)
	}
	later := s.enqueue("noop", "--at", "1h")
	if r := s.try("", "job", "list", "-v"); !strings.Contains(r.err, "database of pelton dev (process ") {
		t.Errorf("-v does not say which database: %q", r.err)
	}

	second := launch(t, devEnvironment(dir), "dev", "--listen", "127.0.0.1:0")
	if code := second.exit(); code != exitRefused || !strings.Contains(second.err.String(), "another pelton dev uses "+dir) {
		t.Errorf("second pelton dev: exit code %d, %s", code, &second.err)
	}
	d.stop()
	s.fails(exitUsage, "start `pelton dev`", "job", "list")

	again := launchDev(t, dir)
	s = again.shell()
	if state := s.state(id); state != "completed" {
		t.Errorf("after a restart the job is %s", state)
	}
	if out := s.ok("job", "logs", id, "--stream", "stderr"); out != "oops\n" {
		t.Errorf("after a restart the log is %q", out)
	}
	if state := s.state(later); state != "scheduled" {
		t.Errorf("after a restart the scheduled job is %s", state)
	}
	again.stop()
}

// A killed pelton dev leaves a stale process id and address behind, and a job that was running.
func TestDevIsKilled(t *testing.T) {
	t.Parallel()
	dir := devDir(t)
	d := launchDev(t, dir)
	s := d.shell()
	id := s.command(`if [ "$PELTON_ATTEMPT" = 1 ]; then sleep 1000; fi; echo done`)
	s.waitState(id, "running")
	d.kill()
	pgtest.Eventually(t, patience, func() bool {
		return s.try("", "job", "list").code == exitUnreachable
	}, "the server to end with its owner")
	s.fails(exitUnreachable, "It was that of a pelton dev that is gone, as "+filepath.Join(dir, "dev.json")+" says", "job", "list")

	again := launchDev(t, dir)
	s = again.shell()
	s.waitState(id, "completed")
	if out := s.ok("job", "logs", id); out != "done\n" {
		t.Errorf("log is %q", out)
	}
	again.stop()
}

// The user's own address is not printed with its password, and the example works as it is printed where there is none to hide.
func TestDevOnADatabaseOfTheUsers(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := launch(t, []string{"DATABASE_URL=" + url, "PELTON_DATA_DIR=" + t.TempDir(), "PELTON_SCHEMA=mine"}, "dev", "--listen", "127.0.0.1:0")
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(p.out.String(), "Ctrl-C stops.") }, "pelton dev to be ready")
	shown := withoutPassword(url)
	if out := p.out.String(); !strings.Contains(out, "export DATABASE_URL='"+shown+"'") || strings.Contains(out, "server log") {
		t.Errorf("printed %q", out)
	}
	if out := p.out.String(); shown != url && (strings.Contains(out, url) || !strings.Contains(out, "with DATABASE_URL set to the whole address")) {
		t.Errorf("printed the password, or nothing of the address: %q", out)
	}
	s := shellOn(t, url)
	tryPrinted(t, p, s)
	s.env["PELTON_SCHEMA"] = "mine"
	s.waitState(s.enqueue("noop"), "completed")
	p.signal(syscall.SIGHUP)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

// tryPrinted does what pelton dev says another terminal can do, in the environment of a shell.
func tryPrinted(t *testing.T, p *process, s *shell) {
	t.Helper()
	_, line, _ := strings.Cut(p.out.String(), "Try in another terminal")
	_, line, _ = strings.Cut(line, "\n  ")
	line, _, _ = strings.Cut(line, "\n")
	before, command, found := strings.Cut(line, "pelton ")
	if address, given := strings.CutPrefix(before, "DATABASE_URL="); given {
		address, _, _ = strings.Cut(address, " ")
		s.env["DATABASE_URL"] = strings.Trim(address, "'")
	}
	head, args, withArgs := strings.Cut(command, " --args '")
	if !found || !withArgs {
		t.Fatalf("no example in %q", p.out.String())
	}
	s.ok(append(strings.Fields(head), "--args", strings.TrimSuffix(args, "'"))...)
}

func TestDevPrintsAnExampleThatWorks(t *testing.T) {
	t.Parallel()
	dir := devDir(t)
	p := launch(t, devEnvironment(dir)[1:], "dev", "--listen", "127.0.0.1:0", "--data-dir", dir, "--schema", "mine")
	pgtest.Eventually(t, patience, func() bool { return strings.Contains(p.out.String(), "Ctrl-C stops.") }, "pelton dev to be ready")
	tryPrinted(t, p, &shell{t: t, env: map[string]string{"HOME": t.TempDir()}})
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

func TestDevLeavesOtherDirectoriesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letters.txt"), []byte("Dear all"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &shell{t: t, env: map[string]string{"HOME": t.TempDir()}}
	s.fails(exitRefused, "holds other things (letters.txt)", "dev", "--data-dir", dir, "--listen", "127.0.0.1:0")
}

// When its database server dies, pelton dev says so and ends.
func TestDevServerDies(t *testing.T) {
	t.Parallel()
	d := launchDev(t, devDir(t))
	text, err := os.ReadFile(filepath.Join(d.dir, "postgres", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(postmaster, syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if code := d.exit(); code != exitFailed || !strings.Contains(d.err.String(), "the database server has ended; its log is "+d.dir) {
		t.Errorf("exit code is %d, stderr %q", code, &d.err)
	}
}

// The default port is not insisted on.
func TestDevPortIsTaken(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", admin.DefaultListen)
	if err == nil { // else somebody else has it, which serves as well
		defer func() { _ = listener.Close() }()
	}
	p := launch(t, []string{"DATABASE_URL=" + url}, "dev", "--json")
	where := fmt.Sprint(p.started()["endpoint"])
	if where == "http://"+admin.DefaultListen || get(t, where+"/healthz") != 200 {
		t.Errorf("endpoint is %s", where)
	}
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitOK || !strings.Contains(p.err.String(), "the port is taken") {
		t.Errorf("exit code is %d, stderr %q", code, &p.err)
	}
}

func TestDevStopsBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	p := launch(t, devEnvironment(devDir(t)), "dev", "--listen", "127.0.0.1:0")
	dataDir := filepath.Join(envValue(p, "PELTON_DATA_DIR"), "postgres.lock")
	pgtest.Eventually(t, patience, func() bool { _, err := os.Stat(dataDir); return err == nil }, "the start to begin")
	p.signal(syscall.SIGINT)
	if code := p.exit(); code != exitInterrupted && code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

func envValue(p *process, key string) string {
	for _, entry := range p.cmd.Env {
		if value, ok := strings.CutPrefix(entry, key+"="); ok {
			return value
		}
	}
	return ""
}

func TestDataDirectory(t *testing.T) {
	t.Parallel()
	a := &app{env: func(key string) string {
		return map[string]string{"XDG_DATA_HOME": "/srv/data", "HOME": "/home/me"}[key]
	}}
	if dir, err := a.dataDirectory(); err != nil || !strings.Contains(dir, "pelton") {
		t.Errorf("by XDG_DATA_HOME: %q, %v", dir, err)
	}
	a.dataDir = "rel"
	if dir, err := a.dataDirectory(); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "rel" {
		t.Errorf("by --data-dir: %q, %v", dir, err)
	}
	a = &app{env: func(string) string { return "" }}
	dir, err := a.dataDirectory()
	if os.Geteuid() != 0 {
		if err == nil {
			t.Error("without HOME there is a data directory")
		}
		return
	}
	// What root cannot put elsewhere is put beside it, and is no reason not to start.
	if beside, placed := postgres.Place(filepath.Join(t.TempDir(), "shut"), ""); err != nil || placed != nil || filepath.Dir(beside) != filepath.Dir(dir) || beside == dir {
		t.Errorf("root's is %q, %v; beside it is %q, %v", dir, err, beside, placed)
	}
}
