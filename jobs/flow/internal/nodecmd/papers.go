package nodecmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// papers is the private temporary directory with the files that a program reads and writes. While the worker lives it holds a lock
// on it: one that nobody holds was left by a worker that was killed.
type papers struct {
	dir  string
	lock *os.File
}

const papersPattern = "pelton-node-*"

func newPapers(parent string, properties map[string]string) (*papers, error) {
	var err error
	for range 3 { // a sweeper may come between the directory and its lock
		var p *papers
		if p, err = tryPapers(parent, properties); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("make a node's temporary files: %w", err)
}

func tryPapers(parent string, properties map[string]string) (*papers, error) {
	dir, err := os.MkdirTemp(parent, papersPattern)
	if err != nil {
		return nil, err
	}
	p := &papers{dir: dir}
	if p.lock, err = lockDir(dir); err == nil {
		err = os.WriteFile(p.properties(), encodeProperties(properties), 0o600)
	}
	if err == nil {
		err = os.WriteFile(p.outputs(), nil, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p *papers) properties() string { return filepath.Join(p.dir, "job.properties") }

func (p *papers) outputs() string { return filepath.Join(p.dir, "outputs.json") }

func (p *papers) remove() error {
	err := os.RemoveAll(p.dir)
	_ = p.lock.Close()
	return err
}

// sweepPapers removes what killed workers have left. What cannot be opened is somebody else's.
func sweepPapers(parent string) error {
	if !canLock {
		return nil
	}
	if parent == "" {
		parent = os.TempDir()
	}
	dirs, err := filepath.Glob(filepath.Join(escapeGlob(parent), papersPattern))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if lock, lockErr := lockDir(dir); lockErr == nil {
			err = errors.Join(err, (&papers{dir, lock}).remove())
		}
	}
	return err
}
