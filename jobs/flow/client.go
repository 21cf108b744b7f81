package flow

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// Errors of this package. The messages around them say which.
var (
	ErrNotFound = store.ErrNotFound                                    // no such project, version, flow, run or node
	ErrRunning  = errors.New("another run of this flow has not ended") // and Options.Concurrent is Skip
	ErrEnded    = errors.New("the run has ended")                      // and cannot be changed so
	ErrLive     = errors.New("the run has not ended")                  // and can be retried only then
	ErrRefused  = errors.New("the run refuses that")                   // as it is now
)

// RefusedError is ErrRefused with the reason.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// Is makes it ErrRefused.
func (e *RefusedError) Is(err error) bool { return err == ErrRefused }

// Config of a client. The zero value is a client with all defaults.
type Config struct {
	// Logger defaults to slog.Default().
	Logger *slog.Logger

	// SchedulerOff has Start advance no runs: others do.
	SchedulerOff bool

	// Types maps node types to command templates, as {"hive": "beeline -f ${hive.script}"}: a node of such a type runs the
	// template, in which its parameters are resolved.
	Types map[string]string

	// Kinds are job kinds that nodes may have beside those that live executors work.
	Kinds []string

	// Retention is how long ended runs are kept. Defaults to 30 days.
	Retention time.Duration

	// KeepVersions is how many versions of a project are kept though no run needs them; older ones go after Retention. Defaults to 10.
	KeepVersions int
}

// Client pushes projects, starts runs and operates on them, and while started advances runs. Safe for concurrent use.
type Client struct {
	config Config
	jobs   *jobs.Client
	pool   *pgxpool.Pool
	store  *store.Store
	log    *slog.Logger
	plans  *plans
	engine *engine
}

// NewClient makes a client on a jobs client and its pool.
func NewClient(pool *pgxpool.Pool, queue *jobs.Client, config *Config) (*Client, error) {
	if pool == nil || queue == nil {
		return nil, errors.New("new flow client: pool or jobs client is nil")
	}
	c := &Client{jobs: queue, pool: pool, store: store.New(pool, queue.Schema()), plans: newPlans(plansBytes)}
	if config != nil {
		c.config = *config
	}
	c.config.withDefaults()
	c.log = c.config.Logger
	c.engine = newEngine(c)
	return c, nil
}

func (c *Config) withDefaults() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Retention == 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	if c.KeepVersions == 0 {
		c.KeepVersions = 10
	}
}

// DefaultFilesDir is where executors lay out the files of versions unless told otherwise: below the user's cache directory, or the
// temporary one.
func DefaultFilesDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "pelton", "flow")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("pelton-flow-%d", os.Getuid()))
}
