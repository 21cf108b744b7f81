package periodic

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

type jobRow = rivertype.JobRow

// throughProxy returns a proxy in front of a migrated database, a pool through it that sends statements as text, and one past it.
func throughProxy(t *testing.T) (*pgtest.Proxy, *pgxpool.Pool, *pgxpool.Pool) {
	t.Helper()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	through := pgtest.Pool(t, proxy.DSN(), func(c *pgxpool.Config) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	})
	return proxy, through, pgtest.Pool(t, dsn)
}

// commitAfter matches the commit that follows a statement with the given text. It needs statements to be sent as text.
func commitAfter(text string) func(message []byte) bool {
	var seen atomic.Bool
	return func(message []byte) bool {
		if bytes.Contains(message, []byte(text)) {
			seen.Store(true)
		}
		return seen.Load() && bytes.Contains(message, []byte("commit\x00"))
	}
}
