package sqltest

import (
	_ "embed"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema/schematest"
)

//go:embed testdata/seed.sql
var seed string

// seeded returns a database with five days of jobs in every state.
func seeded(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := schematest.Pool(t)
	exec(t, pool, seed)
	return pool
}
