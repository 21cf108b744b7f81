package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/floor"
	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestClaimUnderAPinnedSnapshot keeps a snapshot open while 50,000 tickets pass, so that no trace of them can be removed. A claim from
// the mark on touches a few pages, as it does in a fresh line; one from the start wades through what is dead.
func TestClaimUnderAPinnedSnapshot(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	s := store.New(pool, schema.DefaultName)
	marker := floor.NewMarker(schema.DefaultName, floor.Ready, floor.MarkerConfig{Pace: time.Millisecond, Worth: 1, Idle: time.Millisecond})
	tracker := floor.NewTracker(schema.DefaultName, floor.Ready, func(n int) { t.Errorf("%d lines had rows below their marks", n) })
	tracker.Use("a")
	pin, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pin.Rollback(context.WithoutCancel(t.Context())) }()
	do := func(sql string) {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func(n int) {
		do(fmt.Sprintf(`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'a', ARRAY[n] FROM generate_series(1, %d) n`, n))
	}
	follow := func() {
		if _, err := marker.Step(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
		if err := tracker.Refresh(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
	}
	enqueue(1)
	if _, err := pin.Exec(t.Context(), `SELECT count(*) FROM pelton.job_ready`); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	fresh := claimPages(t, pool, s, 0)
	for range 10 {
		enqueue(5000)
		do(`DELETE FROM pelton.job_ready`)
		follow()
	}
	do(`VACUUM pelton.job_ready`) // in vain
	enqueue(1)
	follow()
	marked, unmarked := claimPages(t, pool, s, tracker.Mark("a", 1)), claimPages(t, pool, s, 0)
	t.Logf("pages of a claim: %d in a fresh line, %d at the mark, %d from the start", fresh, marked, unmarked)
	if unmarked < 20*fresh {
		t.Errorf("a claim from the start touches %d pages: the test shows nothing", unmarked)
	}
	if marked > 2*fresh {
		t.Errorf("a claim at the mark touches %d pages, in a fresh line %d", marked, fresh)
	}
}

// claimPages is how many pages the claim of one ticket touches. The claim is rolled back.
func claimPages(t *testing.T, pool *pgxpool.Pool, s *store.Store, mark int64) int {
	t.Helper()
	var plan []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	settings, args := store.ClaimSettings()
	if _, err := tx.Exec(t.Context(), settings, args...); err != nil {
		t.Fatal(err)
	}
	err = tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+s.Statement("claim"), pgx.QueryExecModeExec,
		int64(1), int64(1), []string{"a"}, []int16{1}, []int64{mark}, []float64{0}, 1, 1).Scan(&plan)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan) != 1 {
		t.Fatalf("%d plans", len(plan))
	}
	return plan[0].Plan.Hit + plan[0].Plan.Read
}
