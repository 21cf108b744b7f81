package pgtest

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestParseSettings(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]map[string]string{
		"":                      {},
		"a=1":                   {"a": "1"},
		" a = 1 , b=on,":        {"a": "1", "b": "on"},
		"a='x, y',b='it''s'":    {"a": "x, y", "b": "it's"},
		"search_path=":          {"search_path": ""},
		"a.b='repeatable read'": {"a.b": "repeatable read"},
	} {
		if got, err := parseSettings(text); err != nil || !maps.Equal(got, wanted) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a", "=1", "a='x"} {
		if got, err := parseSettings(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestSweepRemovesOnlyWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	aged := time.Now().Add(-time.Hour)
	for _, name := range []string{"left", "young", "unlocked"} {
		dir := filepath.Join(parent, workdirPrefix+name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if name != "unlocked" {
			if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name != "young" {
			if err := os.Chtimes(dir, aged, aged); err != nil {
				t.Fatal(err)
			}
		}
	}
	held, err := newWorkdirIn(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(held.path, aged, aged); err != nil {
		t.Fatal(err)
	}
	sweep(parent)
	kept := map[string]bool{"left": false, "young": true, "unlocked": true, filepath.Base(held.path)[len(workdirPrefix):]: true}
	for name, wanted := range kept {
		_, err := os.Stat(filepath.Join(parent, workdirPrefix+name))
		if (err == nil) != wanted {
			t.Errorf("%s: there %v, want %v", name, err == nil, wanted)
		}
	}
	if err := held.remove(); err != nil {
		t.Error(err)
	}
}
