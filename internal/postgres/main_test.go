package postgres

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// The tests of this package run the test binary again, as another user or to be killed. What such a process does is
// named by this variable.
const envRole = "PELTON_POSTGRES_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		os.Exit(roles[role]())
	}
	os.Exit(run(m))
}

// run gives the tests a directory for temporary files of their own: the library that downloads leaves some there.
func run(m *testing.M) int {
	parent, err := Place(os.TempDir(), "")
	if err != nil {
		return complain(err)
	}
	dir, err := os.MkdirTemp(parent, "pelton-postgres-test-")
	if err != nil {
		return complain(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir)); err != nil {
		return complain(err)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		return complain(err)
	}
	return code
}

// binaries returns the server that the tests run. The variable is that of package pgtest, which cannot be used here.
func binaries(t *testing.T) Binaries {
	t.Helper()
	found, err := Find(t.Context(), FindOptions{BinDir: os.Getenv("PELTON_TEST_PG_BIN")})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// openDir returns a new directory that every user can reach, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	parent, err := Place(os.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "t-") //nolint:usetesting // the server's user cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func testConfig(t *testing.T) Config {
	t.Helper()
	return Config{
		Binaries: binaries(t), DataDir: filepath.Join(openDir(t), "data"),
		NoSync: true, Trust: true, DieWithOwner: true,
		Settings: map[string]string{"shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap"},
	}
}

// madeConfig is testConfig with a data directory that exists, for tests that are not about its making: a copy is much
// faster than initdb.
func madeConfig(t *testing.T) Config {
	t.Helper()
	config := testConfig(t)
	made, err := madeOnce()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", made, config.DataDir).CombinedOutput(); err != nil {
		t.Fatalf("copy the data directory: %v: %s", err, out)
	}
	return config
}

// madeOnce makes the directory that is copied. It lies in the tests' own directory for temporary files.
var madeOnce = sync.OnceValues(func() (string, error) {
	ctx := context.Background()
	found, err := Find(ctx, FindOptions{BinDir: os.Getenv("PELTON_TEST_PG_BIN")})
	if err != nil {
		return "", err
	}
	config := Config{Binaries: found, DataDir: filepath.Join(os.TempDir(), "made"), NoSync: true, Trust: true}
	as, err := accountFor("")
	if err != nil {
		return "", err
	}
	return config.DataDir, ensureData(ctx, config, as)
})

func startCluster(t *testing.T, config Config) *Cluster {
	t.Helper()
	cluster, err := Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cluster.Discard(ctx); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	session, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	var text string
	if err := session.QueryRow(t.Context(), sql).Scan(&text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return text
}

// rerun prepares a command that runs this test binary in a role, from a place that every user can reach.
func rerun(t *testing.T, role string, arguments ...string) *exec.Cmd {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	shared := filepath.Join(dir, "postgres.test")
	if err := os.WriteFile(shared, program, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), shared, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), envRole+"="+role)
	return command
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func processGone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
