package pgtest

import (
	"context"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/postgres"
)

// NewCluster starts a server for one test that kills, stops or restarts it. Empty fields of the config get the values of
// the shared server (programs, settings, no password); it is stopped and its directory removed when the test ends. Set
// NoSync yourself: a test about crashes of the server does not need the disk, one about durability does.
func NewCluster(t testing.TB, config postgres.Config) *postgres.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if config.Binaries.Dir == "" {
		found, err := find(ctx)
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		config.Binaries = found
	}
	chosen, err := settings()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	// A killed server leaves what it has in /dev/shm behind; files go with the data directory.
	chosen["dynamic_shared_memory_type"] = "mmap"
	maps.Copy(chosen, config.Settings)
	config.Settings = chosen
	if config.DataDir == "" {
		config.DataDir = filepath.Join(Dir(t), "data")
	}
	config.Trust, config.DieWithOwner = true, true
	cluster, err := postgres.Start(ctx, config)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := cluster.Discard(ctx); err != nil {
			t.Errorf("pgtest: stop the test's server: %v", err)
		}
	})
	return cluster
}

// Dir returns a new directory that the user of a test server can reach, which t.TempDir is not for root. It is removed
// when the test ends.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := newWorkdir()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := dir.remove(); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return dir.path
}
