package joblog

import (
	"cmp"
	"log/slog"
	"time"
)

// Defaults of Config.
const (
	DefaultFlushInterval = 250 * time.Millisecond
	DefaultChunkBytes    = 64 << 10
	DefaultHeadBytes     = 10 << 20
	DefaultTailBytes     = 10 << 20
	DefaultFlushBytes    = 1 << 20
	DefaultRunBytes      = 2 << 20
	DefaultMemoryBytes   = 64 << 20
	DefaultPatience      = 5 * time.Second
	DefaultFlushTimeout  = 5 * time.Second
	DefaultStopTimeout   = 10 * time.Second
	DefaultProgressEvery = time.Second
)

// Config says how a Writer buffers and what it keeps. Zero fields mean the defaults; sizes are raised where they would not
// fit each other.
type Config struct {
	// FlushInterval is the longest that a byte waits before it is sent. A process whose jobs print without a pause sends a statement for each interval,
	// or more if they print much; one whose jobs are silent sends none. Defaults to 250 ms.
	FlushInterval time.Duration

	// ChunkBytes is the largest chunk, 1 to 64 KiB. Defaults to 64 KiB.
	ChunkBytes int

	// HeadBytes is how much of the beginning of each run is kept. Defaults to 10 MiB; negative: none.
	HeadBytes int64

	// TailBytes is how much of the end of each run is kept at least, beyond the head; up to an eighth and a chunk more may be.
	// Defaults to 10 MiB.
	TailBytes int64

	// FlushBytes is the size at which data is sent before FlushInterval is over, and the size of one statement. Defaults to
	// 1 MiB; at least ChunkBytes.
	FlushBytes int

	// RunBytes is how much of one run may be unsent; then its writes wait. Defaults to 2 MiB; at least four chunks.
	RunBytes int

	// MemoryBytes is how much of all runs may be unsent; then writes wait. Defaults to 64 MiB; at least RunBytes.
	MemoryBytes int

	// Patience is how long the database may be away before output is dropped instead of making jobs wait. Defaults to 5 s.
	Patience time.Duration

	// FlushTimeout is the longest that one try to store a batch may take. Defaults to 5 s.
	FlushTimeout time.Duration

	// StopTimeout is the longest that Stop tries to store what is left. Defaults to 10 s.
	StopTimeout time.Duration

	// ProgressEvery is the least time between two stored progress reports of a run. Defaults to 1 s.
	ProgressEvery time.Duration

	// Counted is told, on the flusher's goroutine, of the bytes that were stored, trimmed and dropped since the last call. May be nil.
	Counted func(stored, trimmed, dropped int64)

	// Logger is told of failing flushes and dropped output. Defaults to slog's default logger.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.FlushInterval = cmp.Or(max(0, c.FlushInterval), DefaultFlushInterval)
	c.ChunkBytes = cmp.Or(min(max(0, c.ChunkBytes), DefaultChunkBytes), DefaultChunkBytes)
	c.HeadBytes = max(0, cmp.Or(c.HeadBytes, DefaultHeadBytes))
	c.TailBytes = cmp.Or(max(0, c.TailBytes), DefaultTailBytes)
	c.FlushBytes = max(c.ChunkBytes, cmp.Or(c.FlushBytes, DefaultFlushBytes))
	c.RunBytes = max(4*c.ChunkBytes, cmp.Or(c.RunBytes, DefaultRunBytes))
	c.MemoryBytes = max(c.RunBytes, cmp.Or(c.MemoryBytes, DefaultMemoryBytes))
	c.Patience = cmp.Or(max(0, c.Patience), DefaultPatience)
	c.FlushTimeout = cmp.Or(max(0, c.FlushTimeout), DefaultFlushTimeout)
	c.StopTimeout = cmp.Or(max(0, c.StopTimeout), DefaultStopTimeout)
	c.ProgressEvery = cmp.Or(max(0, c.ProgressEvery), DefaultProgressEvery)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}
