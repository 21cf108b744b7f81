package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeServer puts programs into a directory that say they are this version.
func fakeServer(t *testing.T, dir, version string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Some 1:%s-1)'\n", version, version)
	for _, program := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// onlyPath makes PATH one directory for the test, which therefore cannot be parallel.
func onlyPath(t *testing.T, dir string) {
	t.Helper()
	t.Setenv("PATH", dir)
}

func TestFindPrefersTheNewestOfOnePlace(t *testing.T) {
	root := t.TempDir()
	onlyPath(t, filepath.Join(root, "none"))
	for _, version := range []string{"9.6", "14", "15", "9", "17", "16"} {
		fakeServer(t, filepath.Join(root, version, "bin"), version+".2")
	}
	pattern := filepath.Join(root, "[0-9]*", "bin")
	found, err := Find(t.Context(), FindOptions{Patterns: []string{pattern}})
	if err != nil {
		t.Fatal(err)
	}
	if found != (Binaries{Dir: filepath.Join(root, "17", "bin"), Version: "17.2", Major: 17}) {
		t.Errorf("found %+v", found)
	}
	found, err = Find(t.Context(), FindOptions{Patterns: []string{pattern}, Major: 15})
	if err != nil || found.Version != "15.2" {
		t.Errorf("of version 15 found %+v, %v", found, err)
	}
}

func TestFindFollowsLinksOnPath(t *testing.T) {
	root := t.TempDir()
	fakeServer(t, filepath.Join(root, "real"), "18beta1")
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "real", "initdb"), filepath.Join(bin, "initdb")); err != nil {
		t.Fatal(err)
	}
	onlyPath(t, bin)
	found, err := Find(t.Context(), FindOptions{Patterns: []string{}})
	if err != nil || found.Major != 18 || found.Version != "18beta1" || filepath.Base(found.Dir) != "real" {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestFindAsksPgConfig(t *testing.T) {
	root := t.TempDir()
	fakeServer(t, filepath.Join(root, "server"), "16.1")
	script := "#!/bin/sh\n[ \"$1\" = --bindir ] && echo " + filepath.Join(root, "server") + "\n"
	if err := os.WriteFile(filepath.Join(root, "pg_config"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	onlyPath(t, root)
	found, err := Find(t.Context(), FindOptions{Patterns: []string{}})
	if err != nil || found.Major != 16 {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestFindSaysWhereItLookedAndWhyNot(t *testing.T) {
	root := t.TempDir()
	onlyPath(t, filepath.Join(root, "none"))
	fakeServer(t, filepath.Join(root, "old"), "14.9")
	fakeServer(t, filepath.Join(root, "odd"), "unknown")
	broken := filepath.Join(root, "broken")
	fakeServer(t, broken, "16.1")
	if err := os.WriteFile(filepath.Join(broken, "postgres"), []byte("#!/bin/sh\necho no library >&2\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Find(t.Context(), FindOptions{Patterns: []string{filepath.Join(root, "*"), "/nowhere/*/bin"}})
	var missing *NotFoundError
	if !errors.As(err, &missing) || !errors.Is(err, ErrNotFound) {
		t.Fatalf("got %v", err)
	}
	if !slices.Contains(missing.Looked, "/nowhere/*/bin") {
		t.Errorf("looked in %q", missing.Looked)
	}
	for _, wanted := range []string{"14.9 is older than 15", "no library", "unknown", "PATH", "pg_config --bindir"} {
		if !strings.Contains(err.Error(), wanted) {
			t.Errorf("%q does not speak of %q", err, wanted)
		}
	}
}

func TestFindInOneDirectoryOnly(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fakeServer(t, root, "17.0")
	if found, err := Find(t.Context(), FindOptions{BinDir: root}); err != nil || found.Dir != root {
		t.Errorf("found %+v, %v", found, err)
	}
	empty := t.TempDir()
	_, err := Find(t.Context(), FindOptions{BinDir: empty})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), empty) || strings.Contains(err.Error(), "PATH") {
		t.Errorf("got %v", err)
	}
}

func TestFindIsCancelled(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fakeServer(t, root, "17.0")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("never mind"))
	if _, err := Find(ctx, FindOptions{BinDir: root}); err == nil || !strings.Contains(err.Error(), "never mind") {
		t.Errorf("got %v", err)
	}
}
