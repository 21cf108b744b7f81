package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// poolerConfig has few connections to lend, so that sessions do change hands. Trust, as the test servers do.
const poolerConfig = `[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = %s
default_pool_size = 20
max_client_conn = 1000
query_wait_timeout = 30
`

// Pooler starts a PgBouncer in front of the shared server and returns the DSN of the same database through it. mode is
// transaction or session. Without a pgbouncer on this machine the test is skipped, unless PELTON_TEST_PGBOUNCER is set.
func Pooler(t testing.TB, dsn, mode string) string {
	t.Helper()
	program, err := findPooler()
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	if program == "" {
		t.Skip("there is no pgbouncer on this machine: install the package pgbouncer")
	}
	through, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	port, err := unusedPort(t.Context())
	if err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	through.Host = fmt.Sprintf("127.0.0.1:%d", port)
	query := url.Values{"sslmode": {"disable"}}
	through.RawQuery = query.Encode()
	dir := Dir(t)
	users, config := filepath.Join(dir, "users.txt"), filepath.Join(dir, "pgbouncer.ini")
	writePublic(t, users, fmt.Sprintf("%q %q\n", through.User.Username(), ""))
	writePublic(t, config, fmt.Sprintf(poolerConfig, Cluster(t).Port(), port, users, mode))
	said := runPooler(t, program, config)
	Retry(t, 20*time.Second, func(ctx context.Context) error {
		session, err := pgx.Connect(ctx, through.String())
		if err != nil {
			return fmt.Errorf("%w; the pooler said: %s", err, said())
		}
		return session.Close(ctx)
	})
	return through.String()
}

// runPooler runs pgbouncer until the test ends, and returns what it has said.
func runPooler(t testing.TB, program, config string) (said func() string) {
	t.Helper()
	var output syncBuffer
	command := Cluster(t).Beside(context.WithoutCancel(t.Context()), program, config)
	command.Stdout, command.Stderr = &output, &output
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // never unlocked: the pooler ends with the thread that started it
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // it was killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("pgtest: pooler: %v", err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("pgbouncer said: %s", output.String())
		}
	})
	return output.String
}

func writePublic(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // the server's user reads it
		t.Fatalf("pgtest: %v", err)
	}
}

// unusedPort returns a port that nobody listens on at the moment.
func unusedPort(ctx context.Context) (int, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	return address.Port, listener.Close()
}

// syncBuffer collects what a process says while others read it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(b.text.String())
}
