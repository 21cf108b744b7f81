package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
)

// As root, pelton dev also runs for another user, with everything in that user's home. (The other tests run it as root.)
func TestDevAsAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("this test needs root to become somebody else; the others run pelton dev as this user")
	}
	const nobody = 65534
	home := filepath.Join(pgtest.Dir(t), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	program := copyOfProgram(t)
	run := func(args ...string) *process {
		p := prepare(t, []string{"HOME=" + home, "XDG_DATA_HOME="}, args...)
		p.cmd.Path = program
		p.cmd.Dir = home
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		p.start()
		return p
	}
	d := run("dev", "--json", "--listen", "127.0.0.1:0")
	if dir := d.started()["data_dir"]; dir != filepath.Join(home, ".local", "share", "pelton") {
		t.Errorf("data directory is %v", dir)
	}
	enqueued := run("job", "enqueue", "command", "--args", `{"command":"id -u"}`, "--json")
	if code := enqueued.exit(); code != exitOK {
		t.Fatalf("enqueue: exit code %d, %s", code, &enqueued.err)
	}
	id := parseLines(t, enqueued.out.String())[0]["id"]
	followed := run("job", "logs", fmt.Sprint(id), "--follow")
	if code := followed.exit(); code != exitOK || followed.out.String() != "65534\n" {
		t.Errorf("log: exit code %d, %q %s", code, followed.out.String(), &followed.err)
	}
	d.signal(syscall.SIGINT)
	if code := d.exit(); code != exitOK {
		t.Errorf("exit code is %d", code)
	}
}

// copyOfProgram is where any user may run it: what go test builds lies in a directory of its own user.
func copyOfProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	path := filepath.Join(pgtest.Dir(t), "pelton")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
