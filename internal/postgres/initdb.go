package postgres

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// superuser is the role that owns everything in a private server.
const superuser = "postgres"

// memory is what the next start of a data directory must know. Its presence says that the directory is Pelton's.
type memory struct {
	Password string `json:"password,omitempty"`
	Port     int    `json:"port,omitempty"`
}

func memoryFile(dataDir string) string { return filepath.Join(dataDir, "pelton.json") }

func readMemory(dataDir string) (memory, error) {
	var kept memory
	text, err := os.ReadFile(memoryFile(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return kept, fmt.Errorf("%s was not made by pelton (it has no pelton.json): choose another directory", dataDir)
	}
	if err != nil {
		return kept, fmt.Errorf("read data directory: %w", err)
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return kept, fmt.Errorf("read %s: %w", memoryFile(dataDir), err)
	}
	return kept, nil
}

func writeMemory(dataDir string, kept memory, as account) error {
	text, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("remember server: %w", err)
	}
	next := memoryFile(dataDir) + ".new"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember server: %w", err)
	}
	if err := as.give(next); err != nil {
		return fmt.Errorf("remember server: %w", err)
	}
	if err := os.Rename(next, memoryFile(dataDir)); err != nil {
		return fmt.Errorf("remember server: %w", err)
	}
	return nil
}

// DataVersion returns the major version of PostgreSQL that a data directory belongs to, 0 if there is none yet.
func DataVersion(dataDir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dataDir, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("version of data directory: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("version of data directory %s: %w", dataDir, err)
	}
	return major, nil
}

// ensureData makes the data directory unless it holds a cluster of the right version already.
func ensureData(ctx context.Context, config Config, as account) error {
	entries, err := os.ReadDir(config.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	if len(entries) == 0 {
		return makeData(ctx, config, as)
	}
	if _, err := readMemory(config.DataDir); err != nil {
		return err
	}
	major, err := DataVersion(config.DataDir)
	if err != nil {
		return err
	}
	if major != config.Binaries.Major {
		return fmt.Errorf("data directory %s belongs to PostgreSQL %d, but the server in %s is %s",
			config.DataDir, major, config.Binaries.Dir, config.Binaries.Version)
	}
	return nil
}

// makeData runs initdb in a directory beside the wanted one and renames it when everything is in place. The caller
// holds the lock of the data directory, so what an earlier start left half made can go.
func makeData(ctx context.Context, config Config, as account) error {
	building := config.DataDir + ".new"
	if err := os.RemoveAll(building); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := os.Mkdir(building, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if err := as.give(building); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	kept := memory{}
	if !config.Trust {
		kept.Password = rand.Text()
	}
	if err := initdb(ctx, config, as, building, kept.Password); err != nil {
		return err
	}
	if err := writeMemory(building, kept, as); err != nil {
		return err
	}
	if err := os.Remove(config.DataDir); err != nil && !errors.Is(err, fs.ErrNotExist) { // empty
		return fmt.Errorf("make data directory (is it a mount point? then choose a directory in it): %w", err)
	}
	if err := os.Rename(building, config.DataDir); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	return nil
}

// initdb tries C.UTF-8 first, which knows upper and lower case beyond ASCII, then C, which every system has. Both sort
// by byte, so that an index built on one machine is right on another.
func initdb(ctx context.Context, config Config, as account, dir, password string) error {
	secret := dir + ".password" // initdb wants a file of its own, outside the directory
	if password != "" {
		defer func() { _ = os.Remove(secret) }()
		if err := errors.Join(os.WriteFile(secret, []byte(password+"\n"), 0o600), as.give(secret)); err != nil {
			return fmt.Errorf("initdb: %w", err)
		}
	}
	var failures []error
	for _, locale := range []string{"C.UTF-8", "C"} {
		arguments := []string{
			"--pgdata", dir, "--username", superuser, "--encoding", "UTF8", "--locale", locale, "--auth-local", "trust",
		}
		if config.NoSync {
			arguments = append(arguments, "--no-sync")
		}
		if password == "" {
			arguments = append(arguments, "--auth-host", "trust")
		} else {
			arguments = append(arguments, "--auth-host", "scram-sha-256", "--pwfile", secret)
		}
		command := exec.CommandContext(ctx, config.Binaries.path("initdb"), arguments...)
		command.Dir = dir
		command.Env = as.environment()
		command.SysProcAttr = as.attributes()
		out, err := command.CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("initdb: %w", context.Cause(ctx))
		}
		failures = append(failures, fmt.Errorf("initdb with locale %s: %w: %s", locale, err, strings.TrimSpace(string(out))))
	}
	return errors.Join(failures...)
}
