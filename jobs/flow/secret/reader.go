package secret

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// Reader gives secrets to the jobs of nodes. Safe for concurrent use.
type Reader struct {
	pool *pgxpool.Pool
	keys Source
	sql  *sqlfile.Set
}

// NewReader makes a reader of a schema. keys may be nil: then it has no values.
func NewReader(pool *pgxpool.Pool, schema string, keys Source) *Reader {
	if keys == nil {
		keys = KeyFile("")
	}
	return &Reader{pool, keys, sqlfile.Load(files, "sql", schema)}
}

// Node says which job asks, and of which node it is.
type Node struct {
	Run int64
	No  int32
	Job int64
}

// Values returns the values of secrets by name, for a node's newest job. Of two with one name the project's counts. An error says which
// secret is missing, or cannot be decrypted.
func (r *Reader) Values(ctx context.Context, node Node, names []string) (map[string][]byte, error) {
	keys, err := r.keys.Keys()
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", names[0], err)
	}
	type found struct {
		Of            string // the project of the run
		Project, Name string
		Version       int32
		Key           string
		Nonce, Value  []byte
	}
	rows, err := sqlfile.Rows(ctx, r.sql, r.pool, pgx.RowToStructByPos[found], "of_node", node.Run, node.No, node.Job, names)
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("secret %s: job %d is not the newest of a node of run %d, and others get no secrets", names[0], node.Job, node.Run)
	}
	best := map[string]found{}
	for _, f := range rows {
		if old, is := best[f.Name]; !is || old.Project == Everywhere {
			best[f.Name] = f
		}
	}
	values := make(map[string][]byte, len(names))
	for _, name := range names {
		f, is := best[name]
		if !is {
			return nil, fmt.Errorf("secret %s: there is none of that name for project %s, nor for all: pelton secret set %s --project %s", name, rows[0].Of, name, rows[0].Of)
		}
		if values[name], err = keys.open(place{f.Project, f.Name, f.Version}, sealed{f.Key, f.Nonce, f.Value}); err != nil {
			return nil, err
		}
	}
	return values, nil
}
