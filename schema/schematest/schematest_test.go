package schematest_test

import (
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

func TestPoolIsMigratedAndOwn(t *testing.T) {
	t.Parallel()
	one, other := schematest.Pool(t), schematest.Pool(t)
	if _, err := one.Exec(t.Context(), `INSERT INTO pelton.queue (name) VALUES ('a')`); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pelton.queue`).Scan(&n); err != nil || n != 0 {
		t.Fatalf("another test's database has %d queues: %v", n, err)
	}
}
