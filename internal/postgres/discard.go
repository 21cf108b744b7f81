package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Discard stops the server and removes its data directory and everything beside it that this package made. For tests.
func (c *Cluster) Discard(ctx context.Context) error {
	err := c.Stop(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	// After a kill the operating system still holds a small segment, which only a start on the same data would free.
	if left, readErr := readPidfile(c.config.DataDir); readErr == nil && left != nil && left.shmID >= 0 && !alive(left.pid) {
		removeSegment(left.shmID)
	}
	for _, path := range []string{c.config.DataDir, c.config.DataDir + ".new", c.config.LogFile, c.config.DataDir + ".lock"} {
		if removeErr := os.RemoveAll(path); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("discard %s: %w", filepath.Base(path), removeErr))
		}
	}
	return err
}
