package loadtest

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// usage is what has been used up so far: time, processor time, log.
type usage struct {
	at     time.Time
	client time.Duration // processor time of this process
	server time.Duration // processor time of the server's processes; 0 where the system does not tell
	wal    int64         // bytes
}

// read takes a reading. It is cheap enough to be taken around a phase, not within.
func (s *server) read(ctx context.Context) (usage, error) {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return usage{}, fmt.Errorf("processor time: %w", err)
	}
	used, err := s.cluster.CPUTime()
	if err != nil {
		used = 0 // only Linux tells
	}
	wal, err := s.wal(ctx)
	if err != nil {
		return usage{}, err
	}
	return usage{
		at:     time.Now(),
		client: time.Duration(self.Utime.Nano() + self.Stime.Nano()),
		server: used,
		wal:    wal,
	}, nil
}

// since is what was used between two readings.
func (u usage) since(before usage) spent {
	return spent{
		took: u.at.Sub(before.at), client: u.client - before.client, server: u.server - before.server, wal: u.wal - before.wal,
	}
}

type spent struct {
	took, client, server time.Duration
	wal                  int64
}
