package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/peltonq/pelton/internal/postgres"
)

// devFile tells other commands where a running pelton dev is. It holds the database's password, so only its owner reads it.
type devFile struct {
	PID         int       `json:"pid"`
	StartedAt   time.Time `json:"started_at"`
	DatabaseURL string    `json:"database_url"`
	Endpoint    string    `json:"endpoint"`
}

func devFilePath(dir string) string { return filepath.Join(dir, "dev.json") }

func readDevFile(dir string) (devFile, error) {
	var d devFile
	text, err := os.ReadFile(devFilePath(dir))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", devFilePath(dir), err)
	}
	return d, nil
}

// write replaces the file as a whole.
func (d devFile) write(dir string) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	next := devFilePath(dir) + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, devFilePath(dir))
}

// dataDirectory is where pelton dev keeps its database: as told, else in the user's home; for root, whose home the server's
// user cannot enter, a directory of its own under /var/lib/pelton, where other things of Pelton's may lie.
func (a *app) dataDirectory() (string, error) {
	if dir := cmp.Or(a.dataDir, a.env("PELTON_DATA_DIR")); dir != "" {
		return filepath.Abs(dir)
	}
	if data := a.env("XDG_DATA_HOME"); data != "" {
		return postgres.Place(filepath.Join(data, "pelton"), "")
	}
	if os.Geteuid() == 0 {
		return postgres.Place("/var/lib/pelton/dev", "")
	}
	home := a.env("HOME")
	if home == "" {
		return "", usagef("neither HOME nor XDG_DATA_HOME is set: say --data-dir")
	}
	return filepath.Join(home, ".local", "share", "pelton"), nil
}
