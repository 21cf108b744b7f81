package loadtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// The engines.
const (
	EnginePelton = "pelton"
	EngineRiver  = "river"
)

// queueName is the queue of all jobs here.
const queueName = river.QueueDefault

// engine is a job queue that can be put under load.
type engine interface {
	name() string
	// prepare makes the engine's tables in an empty database.
	prepare(ctx context.Context, dsn string) error
	// open makes a client that is not started yet.
	open(pool *pgxpool.Pool, options clientOptions) (client, error)
	// completedSQL counts the jobs recorded as completed.
	completedSQL() string
	// booksSQL tells everything that must agree in the end, as the columns of books.
	booksSQL() string
	// heartbeat tells whether a statement is a sign of life, which an idle client may give.
	heartbeat(statement string) bool
}

type clientOptions struct {
	workers int // 0: a client that only inserts
	worker  river.Worker[noopArgs]
	log     *slog.Logger
	// dutiesOff leaves the scheduler's duties out, where an engine can.
	dutiesOff bool
}

// client is one engine's client on one database.
type client interface {
	insert(ctx context.Context, args noopArgs) error
	insertTx(ctx context.Context, tx pgx.Tx, args noopArgs) error
	insertBulk(ctx context.Context, params []river.InsertManyParams) (int, error)
	start(ctx context.Context) error
	stop(ctx context.Context) error
	// fault is what the client noticed that must not happen, nil if nothing.
	fault() error
}

// engines in the order in which they are known.
var engines = []engine{peltonEngine{}, riverEngine{}}

// chooseEngines finds engines by name; none means all.
func chooseEngines(names []string) ([]engine, error) {
	if len(names) == 0 {
		return engines, nil
	}
	var chosen []engine
	for _, name := range names {
		i := slices.IndexFunc(engines, func(e engine) bool { return e.name() == name })
		if i < 0 {
			return nil, fmt.Errorf("engine %q: want %s", name, strings.Join(engineNames(engines), " or "))
		}
		if slices.Contains(chosen, engines[i]) {
			return nil, fmt.Errorf("engine %q is named twice", name)
		}
		chosen = append(chosen, engines[i])
	}
	return chosen, nil
}

func engineNames(of []engine) []string {
	names := make([]string, 0, len(of))
	for _, e := range of {
		names = append(names, e.name())
	}
	return names
}
