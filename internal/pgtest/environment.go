package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/peltonq/pelton/internal/postgres"
)

const (
	envBin     = "PELTON_TEST_PG_BIN"
	envOptions = "PELTON_TEST_PG_OPTIONS"
	envSize    = "PELTON_SCENARIOS"
	envPooler  = "PELTON_TEST_PGBOUNCER"
)

// FullSize tells whether scenarios are to run at full size, for minutes or hours, instead of for seconds.
func FullSize() bool { return os.Getenv(envSize) == "full" }

// find returns the server's programs for tests: the environment's, else those of this machine, else it downloads some.
func find(ctx context.Context) (postgres.Binaries, error) {
	found, err := postgres.Find(ctx, postgres.FindOptions{BinDir: os.Getenv(envBin)})
	if err == nil || !errors.Is(err, postgres.ErrNotFound) {
		return found, err
	}
	if os.Getenv(envBin) == "" {
		downloaded, downloadErr := download(ctx)
		if downloadErr == nil {
			return downloaded, nil
		}
		err = errors.Join(err, downloadErr)
	}
	return found, fmt.Errorf("%w\n\nThe tests need PostgreSQL %d or newer on this machine. Install it, no service has to run:\n"+
		"  Debian, Ubuntu:  apt-get install postgresql\n"+
		"  Fedora, Red Hat: dnf install postgresql-server\n"+
		"  macOS:           brew install postgresql@17\n"+
		"or set %s to the directory of initdb and postgres", err, postgres.MinMajor, envBin)
}

// findPooler returns the path of pgbouncer; "" if there is none, and the environment does not ask for one.
func findPooler() (string, error) {
	if asked := os.Getenv(envPooler); asked != "" {
		found, err := exec.LookPath(asked)
		if err != nil {
			return "", fmt.Errorf("%s: %w", envPooler, err)
		}
		return found, nil
	}
	for _, place := range []string{"pgbouncer", "/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer"} {
		if found, err := exec.LookPath(place); err == nil {
			return found, nil
		}
	}
	return "", nil
}

// download fetches a server once per user of this machine.
func download(ctx context.Context) (postgres.Binaries, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return postgres.Binaries{}, err
	}
	dir, err := postgres.Place(filepath.Join(cache, "pelton", "postgresql"), "")
	if err != nil {
		return postgres.Binaries{}, err
	}
	return postgres.Download(ctx, postgres.DownloadOptions{Dir: dir})
}

// settings are those of every test server: the fixed ones, then the environment's.
func settings() (map[string]string, error) {
	chosen := map[string]string{
		"max_connections":           "300",
		"max_prepared_transactions": "20",
		"shared_buffers":            "128MB",
	}
	if !FullSize() { // what a test does not ask for holds no locks, changes no plans and writes no WAL; what goes on for hours needs it
		chosen["autovacuum"] = "off"
	}
	more, err := parseSettings(os.Getenv(envOptions))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envOptions, err)
	}
	maps.Copy(chosen, more)
	return chosen, nil
}

// parseSettings reads "name=value,name='value'". Commas split, except within single quotes; a quote in a quoted value is
// written twice.
func parseSettings(text string) (map[string]string, error) {
	parsed := map[string]string{}
	for _, part := range splitOutsideQuotes(text) {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		name, value, found := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !found || name == "" {
			return nil, fmt.Errorf("%q is not name=value", part)
		}
		if strings.HasPrefix(value, "'") {
			if len(value) < 2 || !strings.HasSuffix(value, "'") {
				return nil, fmt.Errorf("%q has an open quote", part)
			}
			value = strings.ReplaceAll(value[1:len(value)-1], "''", "'")
		}
		parsed[name] = value
	}
	return parsed, nil
}

func splitOutsideQuotes(text string) []string {
	quoted := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
		}
		return r == ',' && !quoted
	})
}
