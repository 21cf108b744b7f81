package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestStartMakesAndKeepsData(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Trust = false
	first := startCluster(t, config)
	if got := query(t, first.DSN("postgres"), "SELECT version()"); !strings.Contains(got, "PostgreSQL "+first.Version()) {
		t.Errorf("the server says %q, the programs %q", got, first.Version())
	}
	query(t, first.DSN("postgres"), "CREATE TABLE thing AS SELECT 'kept' AS word")
	for setting, wanted := range map[string]string{
		"server_encoding": "UTF8", "listen_addresses": "127.0.0.1", "TimeZone": "UTC", "fsync": "off",
		"shared_buffers": "16MB", "password_encryption": "scram-sha-256",
	} {
		if got := query(t, first.DSN("postgres"), "SHOW "+setting); got != wanted {
			t.Errorf("%s = %q, want %q", setting, got, wanted)
		}
	}
	// C.UTF-8 knows more letters than C; both sort by byte.
	if locale := query(t, first.DSN("postgres"), "SELECT datctype FROM pg_database WHERE datname = 'template1'"); locale == "C.UTF-8" {
		if got := query(t, first.DSN("postgres"), "SELECT lower('Ä') || ('Z' < 'a')::text"); got != "ätrue" {
			t.Errorf("lower and order: %s", got)
		}
	} else if runtime.GOOS == "linux" {
		t.Errorf("the locale is %s", locale)
	}
	pid := first.PID()
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.PID() != 0 || !processGone(pid) {
		t.Error("it runs after Stop")
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Errorf("second Stop: %v", err)
	}
	second := startCluster(t, config)
	if second.DSN("postgres") != first.DSN("postgres") {
		t.Errorf("the DSN was %s and is %s", first.DSN("postgres"), second.DSN("postgres"))
	}
	if got := query(t, second.DSN("postgres"), "SELECT word FROM thing"); got != "kept" {
		t.Errorf("the table holds %q", got)
	}
}

func TestPasswordIsNeeded(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	config.Trust = false
	cluster := startCluster(t, config)
	dsn, err := url.Parse(cluster.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	dsn.User = url.UserPassword(superuser, "guess")
	session, err := pgx.Connect(t.Context(), dsn.String())
	if err == nil {
		_ = session.Close(t.Context())
	}
	if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "28P01" {
		t.Errorf("a wrong password gives %v", err)
	}
	info, err := os.Stat(memoryFile(cluster.DataDir()))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file has mode %v", info.Mode())
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	dsn := fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", cluster.SocketDir(), cluster.Port())
	if got := query(t, dsn, "SELECT coalesce(inet_server_addr()::text, 'socket')"); got != "socket" {
		t.Errorf("connected by %s", got)
	}
	long := Config{DataDir: "/" + strings.Repeat("x", maxSocketDir)}
	if long.socketDir() != "" {
		t.Error("a socket in a path that is too long")
	}
}

func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	dsn := cluster.DSN("postgres")
	query(t, dsn, "CREATE TABLE thing AS SELECT 'committed' AS word")
	session, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	if _, err := session.Exec(t.Context(), "BEGIN; UPDATE thing SET word = 'lost'"); err != nil {
		t.Fatal(err)
	}
	done := cluster.Done()
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := cluster.Kill(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("killing the dead: %v", err)
	}
	if _, err := cluster.CPUTime(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("time of the dead: %v", err)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cluster.DSN("postgres") != dsn {
		t.Error("the DSN changed")
	}
	if got := query(t, dsn, "SELECT word FROM thing"); got != "committed" {
		t.Errorf("after the crash the table holds %q", got)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Errorf("restart of a running server: %v", err)
	}
	if cluster.PID() == 0 {
		t.Error("no server")
	}
}

func TestRestartWhileOrphansRun(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	session, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close(context.Background()) }()
	backend := int(session.PgConn().PID())
	// A backend that is halted cannot see that its postmaster has died, as a busy one does not.
	if err := errors.Join(syscall.Kill(backend, syscall.SIGSTOP), syscall.Kill(cluster.PID(), syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	<-cluster.Done()
	restarted := make(chan error, 1)
	go func() { restarted <- cluster.Restart(t.Context()) }()
	eventually(t, "the refusal of the first start", func() bool {
		said, err := os.ReadFile(cluster.LogFile())
		return err == nil && strings.Contains(string(said), "pre-existing shared memory block")
	})
	if err := syscall.Kill(backend, syscall.SIGCONT); err != nil {
		t.Error(err)
	}
	if err := <-restarted; err != nil {
		t.Error(err)
	}
}

func TestRestartAfterStop(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	query(t, cluster.DSN("postgres"), "SELECT 'up'")
}

func TestStopIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	pid := cluster.PID()
	impatient, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no patience"))
	if err := cluster.Stop(impatient); err == nil || !strings.Contains(err.Error(), "no patience") {
		t.Errorf("got %v", err)
	}
	if !processGone(pid) {
		t.Error("it still runs")
	}
	if err := cluster.Restart(t.Context()); err != nil {
		t.Errorf("after a stop out of order: %v", err)
	}
}

func TestSecondOwnerIsRefused(t *testing.T) {
	t.Parallel()
	config := madeConfig(t)
	startCluster(t, config)
	_, err := Start(t.Context(), config)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("got %v", err)
	}
}

func TestPortIsAdvice(t *testing.T) {
	t.Parallel()
	config := madeConfig(t)
	port, err := freePort(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	config.Port = port
	taken, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	cluster := startCluster(t, config)
	if cluster.Port() == port {
		t.Error("the port is somebody else's")
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := startCluster(t, config); again.Port() != port {
		t.Errorf("wanted port %d is free, but it is on %d", port, again.Port())
	}
}

func TestRestartDoesNotMove(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(cluster.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	if err := cluster.Restart(t.Context()); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v", err)
	}
}

func TestStalePidfile(t *testing.T) {
	t.Parallel()
	config := madeConfig(t)
	cluster := startCluster(t, config)
	// A program of the server's own user: the server itself takes it for a living predecessor.
	other := exec.CommandContext(t.Context(), "sleep", "600")
	other.SysProcAttr = cluster.as.attributes()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	for name, pid := range map[string]int{
		"of a dead process":    1 << 22, // above what the system hands out
		"of another program":   other.Process.Pid,
		"of this process":      os.Getpid(),
		"of the first process": 1,
	} {
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		path := pidfilePath(config.DataDir)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n")
		if err := os.WriteFile(path, []byte(strconv.Itoa(pid)+"\n"+rest), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Restart(t.Context()); err != nil {
			t.Fatalf("with a postmaster.pid %s: %v", name, err)
		}
	}
}

func TestHalfMadeDataIsMadeAgain(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	if err := os.MkdirAll(filepath.Join(config.DataDir+".new", "base"), 0o700); err != nil { // a killed initdb
		t.Fatal(err)
	}
	if err := os.Mkdir(config.DataDir, 0o755); err != nil { // an empty directory made by the user
		t.Fatal(err)
	}
	startCluster(t, config)
}

func TestForeignDataIsRefused(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	if err := os.Mkdir(config.DataDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config.DataDir, "letter"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "not made by pelton") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(config.DataDir, "letter")); err != nil {
		t.Error(err)
	}
}

func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	config := madeConfig(t)
	cluster := startCluster(t, config)
	if err := cluster.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	major, err := DataVersion(config.DataDir)
	if err != nil || major != config.Binaries.Major {
		t.Errorf("data version %d, %v", major, err)
	}
	config.Binaries.Major, config.Binaries.Version = 99, "99.1"
	_, err = Start(t.Context(), config)
	if err == nil || !strings.Contains(err.Error(), "belongs to PostgreSQL "+strconv.Itoa(major)) || !strings.Contains(err.Error(), "99.1") {
		t.Errorf("got %v", err)
	}
}

func TestStartTellsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	config := madeConfig(t)
	config.Settings = map[string]string{"shared_bufers": "16MB"}
	if _, err := Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), `"shared_bufers"`) {
		t.Errorf("got %v", err)
	}
}

func TestConfigFaultsAreJoined(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Config{Port: -1, Settings: map[string]string{"port": "1", "a b": ""}})
	for _, wanted := range []string{"Binaries", "DataDir", "-1", `"port"`, `"a b"`} {
		if err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%v does not speak of %s", err, wanted)
		}
	}
}

func TestDoneWhenItDiesByItself(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	if err := syscall.Kill(cluster.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-cluster.Done():
	case <-time.After(time.Minute):
		t.Fatal("nobody noticed")
	}
	if cluster.PID() != 0 {
		t.Error("it has a process id")
	}
}

// owner runs a process that owns a server in dir and returns both.
func owner(t *testing.T, dir, mode string) (kill func(), server int) {
	t.Helper()
	command := rerun(t, "own", dir, mode)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	server, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return kill, server
}

func TestServerLeftBehindIsRefused(t *testing.T) {
	t.Parallel()
	config := testConfig(t)
	kill, server := owner(t, filepath.Dir(config.DataDir), "survive")
	kill()
	_, err := Start(t.Context(), config)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(server)) {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(server, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	startCluster(t, config) // waits for the end of the one that stops, or finds it gone
}
