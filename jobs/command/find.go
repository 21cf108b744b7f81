package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNotFound is the error of a program that does not exist or cannot be executed.
var ErrNotFound = errors.New("program not found")

// find returns the path of a program: a name is looked for in the PATH that it will run with, a path is relative to the
// working directory.
func find(program, dir string, env []string) (string, error) {
	if strings.ContainsAny(program, pathSeparators) {
		path := program
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		path, err := filepath.Abs(path)
		if err == nil {
			path, err = exec.LookPath(path)
		}
		if err != nil {
			return "", fmt.Errorf("%w: %q: %w", ErrNotFound, program, reason(err))
		}
		return path, nil
	}
	search := variable(env, "PATH")
	for _, place := range filepath.SplitList(search) {
		if !filepath.IsAbs(place) {
			continue
		}
		if path, err := exec.LookPath(filepath.Join(place, program)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: %q is in no directory of PATH (%s)", ErrNotFound, program, search)
}

// reason takes the path off an error, which names it already.
func reason(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return err
}

// variable returns the last value of a variable.
func variable(env []string, name string) string {
	value := ""
	for _, entry := range env {
		key, v, _ := strings.Cut(entry, "=")
		if key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name) {
			value = v
		}
	}
	return value
}
