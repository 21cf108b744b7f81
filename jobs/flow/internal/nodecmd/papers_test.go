//go:build unix

package nodecmd

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSweep has a directory that a killed worker left, one of a worker that lives, and one of somebody else.
func TestSweep(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	live, err := newPapers(parent, nil)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(parent, "pelton-node-left")
	other := filepath.Join(parent, "other")
	for _, dir := range []string{left, other} {
		if err := os.MkdirAll(filepath.Join(dir, "in it"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweepPapers(parent); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{left: false, other: true, live.outputs(): true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", dir, err == nil, want)
		}
	}
	if err := live.remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(live.dir); err == nil {
		t.Error("the directory is left")
	}
}
