package jobs_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

func byArgs() *river.InsertOpts {
	return &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// A race for a unique key ends with one job and no error, whatever isolation level the session has by default.
func TestUniqueInsertUnderAStrictDefault(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "repeatable read"
	})
	client := newClient(t, pool, nil)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, err := client.InsertTx(t.Context(), tx, taskArgs{N: 1}, byArgs())
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		res *rivertype.JobInsertResult
		err error
	}
	second := make(chan answer, 1)
	go func() {
		res, err := client.Insert(t.Context(), taskArgs{N: 1}, byArgs())
		second <- answer{res, err}
	}()
	pgtest.Eventually(t, patience, func() bool {
		return one[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	}, "the second insert waits")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := <-second
	if a.err != nil || !a.res.UniqueSkippedAsDuplicate || a.res.Job.ID != first.Job.ID {
		t.Errorf("the second insert: %+v, %v, want a duplicate of %d", a.res, a.err, first.Job.ID)
	}
}

// Duplicates come back as the rows of their holders, each at its place.
func TestHoldersOfManyDuplicates(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	var params []river.InsertManyParams
	for n := range 300 {
		params = append(params, river.InsertManyParams{Args: taskArgs{N: n}, InsertOpts: byArgs()})
	}
	made, err := client.InsertMany(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(params)
	params = append(params, params[0], river.InsertManyParams{Args: taskArgs{N: 300}, InsertOpts: byArgs()})
	again, err := client.InsertMany(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range again[:300] {
		if want := made[299-i].Job; !res.UniqueSkippedAsDuplicate || res.Job.ID != want.ID || string(res.Job.EncodedArgs) != string(want.EncodedArgs) {
			t.Fatalf("result %d is job %d %s, want %d", i, res.Job.ID, res.Job.EncodedArgs, want.ID)
		}
	}
	if again[300].Job.ID != again[0].Job.ID || again[301].UniqueSkippedAsDuplicate {
		t.Errorf("the last two are %+v and %+v", again[300], again[301])
	}
}

// An insert that says it failed has stored nothing.
func TestInsertWhoseHolderCannotBeRead(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	insert(t, client, 1, byArgs())
	exec(t, pool, `ALTER FUNCTION pelton.job_rows RENAME TO job_rows_gone`)
	params := []river.InsertManyParams{{Args: taskArgs{N: 1}, InsertOpts: byArgs()}, {Args: taskArgs{N: 2}, InsertOpts: byArgs()}}
	if _, err := client.InsertMany(t.Context(), params); err == nil {
		t.Error("the insert has not failed")
	}
	if n := one[int](t, pool, `SELECT count(*) FROM pelton.job`); n != 1 {
		t.Errorf("%d jobs are stored, want the first one only", n)
	}
}

// Ids that are taken are drawn anew, once.
func TestTakenIDsAreDrawnAnew(t *testing.T) {
	t.Parallel()
	many := func(opts *river.InsertOpts) []river.InsertManyParams {
		return []river.InsertManyParams{{Args: taskArgs{N: 2}, InsertOpts: opts}, {Args: taskArgs{N: 3}, InsertOpts: opts}}
	}
	for name, insertTwo := range map[string]func(client *jobs.Client) error{
		"plain": func(client *jobs.Client) error {
			_, err := client.InsertMany(t.Context(), many(nil))
			return err
		},
		"unique": func(client *jobs.Client) error {
			_, err := client.InsertMany(t.Context(), many(byArgs()))
			return err
		},
		"fast": func(client *jobs.Client) error {
			_, err := client.InsertManyFast(t.Context(), many(nil))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := schematest.Audited(t)
			client := newClient(t, pool, nil)
			insert(t, client, 1, nil)
			exec(t, pool, `CREATE SEQUENCE draws`)
			exec(t, pool, `ALTER FUNCTION pelton.job_ids RENAME TO job_ids_fresh`)
			exec(t, pool, `CREATE FUNCTION pelton.job_ids(n integer) RETURNS bigint[] LANGUAGE sql VOLATILE AS $$
				SELECT CASE WHEN nextval('draws') = 1 THEN (SELECT array_agg(id + g) FROM pelton.job, generate_series(0, n - 1) g)
					ELSE pelton.job_ids_fresh(n) END $$`)
			if err := insertTwo(client); err != nil {
				t.Fatal(err)
			}
			if n, draws := one[int](t, pool, `SELECT count(*) FROM pelton.job`), one[int](t, pool, `SELECT last_value FROM draws`); n != 3 || draws != 2 {
				t.Errorf("%d jobs are stored after %d draws, want 3 after 2", n, draws)
			}
		})
	}
}
