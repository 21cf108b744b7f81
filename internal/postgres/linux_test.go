package postgres

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestServerDiesWithItsOwner(t *testing.T) {
	t.Parallel()
	kill, server := owner(t, openDir(t), "die")
	if processGone(server) {
		t.Fatal("no server")
	}
	kill()
	eventually(t, "the server's end", func() bool { return processGone(server) })
}

func TestKillLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	for range 10 {
		session, err := pgx.Connect(t.Context(), cluster.DSN("postgres"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = session.Close(context.Background()) }()
	}
	postmaster := cluster.PID()
	living, err := children(postmaster)
	if err != nil {
		t.Fatal(err)
	}
	if len(living) < 13 {
		t.Errorf("%d processes", len(living))
	}
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if !processGone(postmaster) {
		t.Error("the postmaster runs")
	}
	for pid := range living {
		if stat, err := readStat(pid); err == nil && stat.state != "Z" && stat.state != "X" {
			t.Errorf("process %d is in state %s", pid, stat.state)
		}
	}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("every other test runs as one already")
	}
	as, err := lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	if err := os.Chown(dir, as.uid, as.gid); err != nil {
		t.Fatal(err)
	}
	command := rerun(t, "ordinary", dir)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}}
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "done as 65534") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestServerRunsAsAnotherUserThanRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	for _, name := range []string{"", "nobody"} {
		config := testConfig(t)
		config.OSUser = name
		cluster := startCluster(t, config)
		var info syscall.Stat_t
		if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(cluster.PID())), &info); err != nil {
			t.Fatal(err)
		}
		as, err := accountFor(name)
		if err != nil {
			t.Fatal(err)
		}
		if int(info.Uid) != as.uid || cluster.OSUser() != as.name {
			t.Errorf("it runs as %d (%s), want %d", info.Uid, cluster.OSUser(), as.uid)
		}
	}
}

func TestCPUTimeCountsEndedBackends(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, madeConfig(t))
	used := func() time.Duration {
		sum, err := cluster.CPUTime()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := used()
	query(t, cluster.DSN("postgres"), "SELECT count(*)::text FROM generate_series(1, 3000000) AS n WHERE md5(n::text) < '8'")
	// The session is closed; whether its backend has been reaped by now or not, its time must be there.
	middle := used()
	if middle-before < 300*time.Millisecond {
		t.Errorf("three million sums took %v", middle-before)
	}
	eventually(t, "the backend's end", func() bool {
		return query(t, cluster.DSN("postgres"), "SELECT count(*)::text FROM pg_stat_activity WHERE query LIKE '%generate_series(1, 3%' AND pid <> pg_backend_pid()") == "0"
	})
	if after := used(); after < middle {
		t.Errorf("the time went back from %v to %v", middle, after)
	}
}
