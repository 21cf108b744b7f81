package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/postgres"
)

// Standby is a hot standby of a test's server. It follows by streaming replication, and the server does not wait for it.
type Standby struct {
	*postgres.Cluster

	primary *postgres.Cluster
	line    *Proxy // that it follows through
}

// NewStandby makes a standby from a copy of a server's data, for which that server is stopped and started again. It has
// the settings of [NewCluster].
func NewStandby(t testing.TB, primary *postgres.Cluster) *Standby {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dataDir := filepath.Join(Dir(t), "data")
	if err := primary.Stop(ctx); err != nil {
		t.Fatalf("pgtest: standby: %v", err)
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", primary.DataDir(), dataDir).CombinedOutput(); err != nil { // owners are kept
		t.Fatalf("pgtest: standby: copy: %v: %s", err, out)
	}
	if err := primary.Restart(ctx); err != nil {
		t.Fatalf("pgtest: standby: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dataDir, "standby.signal"), nil, 0o644); err != nil { //nolint:gosec // the server may run as another user
		t.Fatalf("pgtest: standby: %v", err)
	}
	line := NewProxy(t, primary.DSN("postgres"))
	at, err := url.Parse(line.DSN())
	if err != nil {
		t.Fatalf("pgtest: standby: %v", err)
	}
	follows := fmt.Sprintf("host=%s port=%s user=%s sslmode=disable gssencmode=disable", at.Hostname(), at.Port(), at.User.Username())
	copied := NewCluster(t, postgres.Config{DataDir: dataDir, NoSync: true, Settings: map[string]string{"primary_conninfo": follows}})
	return &Standby{Cluster: copied, primary: primary, line: line}
}

// AwaitCopy waits until the standby has applied what the primary has written by now.
func (s *Standby) AwaitCopy(t testing.TB) {
	t.Helper()
	ask := func(ctx context.Context, cluster *postgres.Cluster, sql string, args ...any) (position string, err error) {
		session, err := pgx.Connect(ctx, cluster.DSN("postgres"))
		if err != nil {
			return "", err
		}
		defer func() { _ = session.Close(ctx) }()
		err = session.QueryRow(ctx, sql, args...).Scan(&position)
		return position, err
	}
	written, err := ask(t.Context(), s.primary, "SELECT pg_current_wal_flush_lsn()::text")
	if err != nil {
		t.Fatalf("pgtest: standby: %v", err)
	}
	Retry(t, time.Minute, func(ctx context.Context) error {
		behind, err := ask(ctx, s.Cluster, "SELECT (pg_last_wal_replay_lsn() < $1::text::pg_lsn)::text", written)
		if err == nil && behind != "false" {
			err = fmt.Errorf("the standby has not applied %s", written)
		}
		return err
	})
}

// Lag cuts the standby off from its primary: what is committed from now on is not in it.
func (s *Standby) Lag() { s.line.Down() }

// Promote makes the standby a primary of its own. The old one should have been killed.
func (s *Standby) Promote(t testing.TB) {
	t.Helper()
	session, err := pgx.Connect(t.Context(), s.DSN("postgres"))
	if err != nil {
		t.Fatalf("pgtest: promote: %v", err)
	}
	defer func() { _ = session.Close(context.WithoutCancel(t.Context())) }()
	var done bool
	if err := session.QueryRow(t.Context(), "SELECT pg_promote(true, 60)").Scan(&done); err != nil || !done {
		t.Fatalf("pgtest: promote: done is %v: %v", done, err)
	}
}
