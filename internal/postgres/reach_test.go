package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stranger is an account that owns nothing here.
var stranger = account{name: "stranger", uid: 54321, gid: 54321, switched: true}

func TestCanReach(t *testing.T) {
	t.Parallel()
	root := openDir(t)
	shut := filepath.Join(root, "shut")
	if err := os.MkdirAll(filepath.Join(shut, "inner"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(shut, "inner", "not", "yet", "there")
	if err := stranger.canReach(path); err != nil {
		t.Errorf("open directories: %v", err)
	}
	if err := os.Chmod(shut, 0o750); err != nil {
		t.Fatal(err)
	}
	resolved, err := filepath.EvalSymlinks(shut)
	if err != nil {
		t.Fatal(err)
	}
	var unreachable *UnreachableError
	if err := stranger.canReach(path); !errors.As(err, &unreachable) || unreachable.Dir != resolved {
		t.Errorf("got %v", err)
	}
	// A link to a shut directory is shut too.
	link := filepath.Join(root, "link")
	if err := os.Symlink(shut, link); err != nil {
		t.Fatal(err)
	}
	if err := stranger.canReach(filepath.Join(link, "inner")); !errors.As(err, &unreachable) || unreachable.Dir != resolved {
		t.Errorf("by a link: %v", err)
	}
	if err := (account{uid: os.Geteuid(), gid: os.Getegid()}).canReach(path); err != nil {
		t.Errorf("its owner: %v", err)
	}
}

func TestRootIsToldWhichDirectoryIsShut(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as somebody else")
	}
	config := testConfig(t)
	shut := filepath.Dir(config.DataDir)
	if err := os.Chmod(shut, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), config)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || unreachable.Dir != shut || !strings.Contains(err.Error(), "chmod o+x") {
		t.Errorf("got %v", err)
	}
	place, err := Place(config.DataDir, "")
	if err != nil || place == config.DataDir || !strings.HasPrefix(filepath.Base(place), "data-") {
		t.Errorf("the place instead is %q, %v", place, err)
	}
	if again, err := Place(config.DataDir, ""); err != nil || again != place {
		t.Errorf("the place was %q and is %q, %v", place, again, err)
	}
	if err := os.Chmod(shut, 0o755); err != nil {
		t.Fatal(err)
	}
	if place, err := Place(config.DataDir, ""); err != nil || place != config.DataDir {
		t.Errorf("the open place is %q, %v", place, err)
	}
}

func TestAccountFor(t *testing.T) {
	t.Parallel()
	if _, err := accountFor("no-such-user-here"); err == nil || !strings.Contains(err.Error(), "no-such-user-here") {
		t.Errorf("got %v", err)
	}
	if os.Geteuid() == 0 {
		if _, err := accountFor("root"); err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("got %v", err)
		}
	}
}
