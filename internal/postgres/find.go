package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrNotFound is matched by the error of [Find] when no usable PostgreSQL is on this machine.
var ErrNotFound = errors.New("no usable PostgreSQL found")

// FindOptions narrows the search of [Find]. The zero value searches everywhere for any supported version.
type FindOptions struct {
	// BinDir, when set, is the only directory looked at.
	BinDir string
	// Major, when not 0, is the only major version accepted; for a data directory that exists already.
	Major int
	// Patterns are the directories searched after PATH and pg_config, as patterns of filepath.Glob. Defaults to the
	// usual places of Debian, Red Hat, Homebrew, MacPorts and Postgres.app.
	Patterns []string
}

// usualPlaces are searched in this order, within each the newest version first.
var usualPlaces = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Red Hat, from postgresql.org
	"/usr/lib64/pgsql/bin",      // SUSE
	"/usr/bin",                  // Red Hat, Fedora, Arch
	"/usr/libexec/postgresql*",  // Alpine
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/opt/homebrew/Cellar/postgresql@*/*/bin",
	"/usr/local/Cellar/postgresql@*/*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// NotFoundError tells where [Find] looked. It matches [ErrNotFound].
type NotFoundError struct {
	// Looked names the places in the order they were searched.
	Looked []string
	// Rejected says why a server that was found is of no use, by directory.
	Rejected []string
}

func (e *NotFoundError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v: version %d or newer is needed (initdb and postgres in one directory)", ErrNotFound, MinMajor)
	for _, line := range e.Rejected {
		text.WriteString("; not used: " + line)
	}
	text.WriteString("; looked in " + strings.Join(e.Looked, ", "))
	return text.String()
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// Find returns the first PostgreSQL that Pelton can use: from PATH, from pg_config, then from the usual places, the
// newest version first. The error is a *[NotFoundError] when there is none.
func Find(ctx context.Context, options FindOptions) (Binaries, error) {
	missing := &NotFoundError{}
	seen := map[string]bool{}
	for _, place := range places(ctx, options) {
		missing.Looked = append(missing.Looked, place.name)
		for _, dir := range place.dirs {
			if seen[dir] {
				continue
			}
			seen[dir] = true
			found, err := inspect(ctx, dir)
			if err == nil {
				err = options.accept(found)
			}
			if err == nil {
				return found, nil
			}
			if ctx.Err() != nil {
				return Binaries{}, fmt.Errorf("find PostgreSQL: %w", context.Cause(ctx))
			}
			if !errors.Is(err, errAbsent) || options.BinDir != "" {
				missing.Rejected = append(missing.Rejected, fmt.Sprintf("%s (%v)", dir, err))
			}
		}
	}
	return Binaries{}, missing
}

func (o FindOptions) accept(found Binaries) error {
	switch {
	case found.Major < MinMajor:
		return fmt.Errorf("version %s is older than %d", found.Version, MinMajor)
	case o.Major != 0 && found.Major != o.Major:
		return fmt.Errorf("version %s, but the data directory needs %d", found.Version, o.Major)
	}
	return nil
}

// place is one entry of the search: its name for the error and the directories it stands for.
type place struct {
	name string
	dirs []string
}

func places(ctx context.Context, options FindOptions) []place {
	if options.BinDir != "" {
		return []place{{name: options.BinDir, dirs: []string{options.BinDir}}}
	}
	found := []place{
		{name: "PATH", dirs: append(onPath("initdb"), onPath("postgres")...)},
		{name: "pg_config --bindir", dirs: pgConfig(ctx)},
	}
	patterns := options.Patterns
	if patterns == nil {
		patterns = usualPlaces
	}
	for _, pattern := range patterns {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			dirs = nil // a bad pattern finds nothing and is named in the error
		}
		slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(versionIn(b), versionIn(a)) })
		found = append(found, place{name: pattern, dirs: dirs})
	}
	return found
}

// onPath returns the directory of a program on PATH: where the program really is, then where its link is.
func onPath(program string) []string {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil
	}
	path, err = filepath.Abs(path)
	if err != nil {
		return nil
	}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return []string{filepath.Dir(resolved), filepath.Dir(path)}
	}
	return []string{filepath.Dir(path)}
}

func pgConfig(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
	if err != nil {
		return nil
	}
	return []string{strings.TrimSpace(string(out))}
}

var numberPattern = regexp.MustCompile(`\d+(\.\d+)?`)

// versionIn reads the version out of a directory's name; the last number counts (".../postgresql@16/16.4/bin").
func versionIn(dir string) float64 {
	numbers := numberPattern.FindAllString(dir, -1)
	if len(numbers) == 0 {
		return 0
	}
	version, err := strconv.ParseFloat(numbers[len(numbers)-1], 64)
	if err != nil {
		return 0
	}
	return version
}
