package flow

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/follow"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
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
	// template, in which its parameters are resolved. A version keeps the templates that its push knew, so only clients that push
	// need them. The names of the built-in types are refused.
	Types map[string]string

	// CheckTrigger says what is wrong with the expression of a flow's trigger, which is a fault of its push then. Defaults to none: a push
	// starts no schedule.
	CheckTrigger func(expression string) error

	// Observer follows runs from their creation to their end: package jobs/trace. May be nil.
	Observer follow.Observer

	// Kinds are job kinds that nodes may have beside those that live executors work.
	Kinds []string

	// Params are parameters of the installation, for the nodes of all flows; they are weaker than any other. All schedulers must have the
	// same. Names of the engine (azkaban.flow..., azkaban.job...) are refused.
	Params map[string]string

	// MaxXms and MaxXmx are the largest heaps that a node may ask for by Xms and Xmx, as Java writes sizes: "512M", "4G". What is written
	// down is checked by a push, what parameters say when the node starts. Default to 1G and 2G.
	MaxXms, MaxXmx string

	// StepObserver is told of the engine's steps, for metrics. May be nil.
	StepObserver StepObserver

	// Retention is how long ended runs are kept. Defaults to 30 days.
	Retention time.Duration

	// KeepVersions is how many versions of a project are kept though no run needs them; older ones go after Retention. Defaults to 10.
	KeepVersions int
}

// heaps are Config.MaxXms and MaxXmx in bytes.
type heaps struct{ xms, xmx int64 }

// Client pushes projects, starts runs and operates on them, and while started advances runs. Safe for concurrent use.
type Client struct {
	config Config
	heaps  heaps
	jobs   *jobs.Client
	pool   *pgxpool.Pool
	store  *store.Store
	log    *slog.Logger
	plans  *kept[planKey, *plan]
	engine *engine

	pictures *kept[planKey, *Picture]
	drawing  chan struct{} // held by who draws
}

// NewClient makes a client on a jobs client and its pool. Errors: what is wrong with the config.
func NewClient(pool *pgxpool.Pool, queue *jobs.Client, config *Config) (*Client, error) {
	if pool == nil || queue == nil {
		return nil, errors.New("new flow client: pool or jobs client is nil")
	}
	c := &Client{jobs: queue, pool: pool, store: store.New(pool, queue.Schema()), plans: newPlans(plansBytes)}
	c.pictures, c.drawing = newKept[planKey](picturesBytes, (*Picture).Size), make(chan struct{}, 1)
	if config != nil {
		c.config = *config
	}
	c.config.withDefaults()
	var err error
	if c.heaps, err = c.config.validate(); err != nil {
		return nil, fmt.Errorf("new flow client: %w", err)
	}
	c.log = c.config.Logger
	c.engine = newEngine(c)
	return c, nil
}

func (c *Config) withDefaults() {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.StepObserver == nil {
		c.StepObserver = noObserver{}
	}
	c.MaxXms, c.MaxXmx = cmp.Or(c.MaxXms, "1G"), cmp.Or(c.MaxXmx, "2G")
	if c.Retention == 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	if c.KeepVersions == 0 {
		c.KeepVersions = 10
	}
}

// validate joins everything that is wrong with the config, and reads the sizes.
func (c *Config) validate() (h heaps, err error) {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		switch {
		case name == "":
			faults = append(faults, errors.New("a parameter of the installation has no name"))
		case param.Reserved(name):
			faults = append(faults, fmt.Errorf("parameter %q is the engine's own and cannot be set", name))
		case strings.HasPrefix(name, param.SecretPrefix):
			faults = append(faults, fmt.Errorf("parameter %q: names that begin with %s are those of secrets", name, param.SecretPrefix))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Types)) {
		switch {
		case draft.BuiltIn(name):
			faults = append(faults, fmt.Errorf("type %q is built in and cannot be mapped to a command", name))
		case name == "" || strings.TrimSpace(c.Types[name]) == "":
			faults = append(faults, fmt.Errorf("type %q is mapped to the command %q: want a name and a command", name, c.Types[name]))
		}
	}
	for _, name := range c.Kinds {
		if draft.BuiltIn(name) {
			faults = append(faults, fmt.Errorf("type %q is built in and cannot be a job kind", name))
		}
	}
	size := func(name, text string) int64 {
		n, err := draft.ParseMemory(text)
		if err == nil && n < 1<<20 {
			err = fmt.Errorf("%s is too little, want 1M or more", text)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("largest %s: %w", name, err))
		}
		return n
	}
	h = heaps{size("Xms", c.MaxXms), size("Xmx", c.MaxXmx)}
	return h, errors.Join(faults...)
}

// DefaultFilesDir is where executors lay out the files of versions unless told otherwise: below the user's cache directory, or the
// temporary one.
func DefaultFilesDir() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "pelton", "flow")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("pelton-flow-%d", os.Getuid()))
}
