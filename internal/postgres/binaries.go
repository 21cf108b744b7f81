package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version of PostgreSQL that Pelton works with.
const MinMajor = 15

// Binaries says where the programs of one PostgreSQL server are.
type Binaries struct {
	// Dir holds initdb and postgres.
	Dir string
	// Version is the server's own word, for example "15.14" or "18beta1".
	Version string
	// Major is the first number of Version.
	Major int
}

// path returns the path of one program.
func (b Binaries) path(program string) string { return filepath.Join(b.Dir, program) }

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[^ \n]*)`)

// errAbsent says that a directory does not hold a server at all, in contrast to one that cannot be used.
var errAbsent = errors.New("no initdb and postgres there")

// inspect looks at a directory and asks the server in it for its version. Its error says why the directory is of no
// use.
func inspect(ctx context.Context, dir string) (Binaries, error) {
	for _, program := range []string{"initdb", "postgres"} {
		info, err := os.Stat(filepath.Join(dir, program))
		if errors.Is(err, fs.ErrNotExist) {
			return Binaries{}, errAbsent
		}
		if err != nil {
			return Binaries{}, err
		}
		if info.IsDir() || info.Mode().Perm()&0o111 == 0 {
			return Binaries{}, fmt.Errorf("%s is not a program", program)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return Binaries{}, fmt.Errorf("postgres --version: %w: %s", err, firstLine(out))
	}
	found := versionPattern.FindSubmatch(out)
	if found == nil {
		return Binaries{}, fmt.Errorf("postgres --version says %q", firstLine(out))
	}
	major, err := strconv.Atoi(string(found[2]))
	if err != nil {
		return Binaries{}, fmt.Errorf("postgres --version says %q: %w", firstLine(out), err)
	}
	return Binaries{Dir: dir, Version: string(found[1]), Major: major}, nil
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
