package jobs_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// importArgs are args with and without a part in the unique key.
type importArgs struct {
	Trace string         `json:"trace"`
	File  string         `json:"file" river:"unique"`
	Box   map[string]any `json:"box" river:"unique"`
}

func (importArgs) Kind() string { return "import" }

// wholeArgs all count.
type wholeArgs struct {
	Z string         `json:"z"`
	A []int          `json:"a"`
	B map[string]any `json:"b<&"`
}

func (wholeArgs) Kind() string { return "whole" }

// TestUniqueKeysOfGoAndSQLAgree enqueues a job from Go and the same one from SQL: the second must find the first. The args in
// SQL are written as a person would, with spaces and without HTML escapes.
func TestUniqueKeysOfGoAndSQLAgree(t *testing.T) {
	t.Parallel()
	due := time.Date(2041, 2, 3, 4, 5, 6, 789000000, time.FixedZone("", 3600))
	tagged := importArgs{Trace: "1", File: "ü <a> & b\u2028", Box: map[string]any{"y": []int{1, 2}, "x": nil}}
	const taggedSQL = `'{"file": "ü <a> & b' || chr(8232) || '", "trace": "2", "box": {"x": null, "y": [1, 2]}}'`
	whole := wholeArgs{Z: "tab\t\"quoted\"", A: []int{1, -2}, B: map[string]any{"é": true}}
	const wholeSQL = `'{"b<&": {"é": true}, "a": [ 1, -2 ], "z": "tab\t\"quoted\""}'`
	required := []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	}
	for name, c := range map[string]struct {
		args river.JobArgs
		opts river.InsertOpts
		sql  string
	}{
		"tagged fields": {
			tagged,
			river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}},
			`'import', ` + taggedSQL + `, unique_fields => '{box,file}'`,
		},
		"all args": {
			whole,
			river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}},
			`'whole', ` + wholeSQL + `, unique_by_args => true`,
		},
		"queue": {
			whole,
			river.InsertOpts{Queue: "mail", UniqueOpts: river.UniqueOpts{ByQueue: true}},
			`'whole', queue => 'mail', unique_by_queue => true`,
		},
		"period": {
			whole,
			river.InsertOpts{ScheduledAt: due, UniqueOpts: river.UniqueOpts{ByPeriod: 7 * 24 * time.Hour}},
			`'whole', run_at => '2041-01-28 00:00Z', unique_by_period => '7 days'`,
		},
		"states alone": {
			whole,
			river.InsertOpts{UniqueOpts: river.UniqueOpts{ByState: required}},
			`'whole', unique_states => '{available,pending,running,scheduled}'`,
		},
		"everything, without the kind": {tagged, river.InsertOpts{ScheduledAt: due, UniqueOpts: river.UniqueOpts{
			ByArgs: true, ByQueue: true, ByPeriod: time.Hour, ByState: required, ExcludeKind: true,
		}}, `'other', ` + taggedSQL + `, run_at => '2041-02-03 03:59:59Z', unique_fields => '{file,box}', unique_by_queue => true,
			unique_by_period => '1 hour', unique_states => '{available,pending,running,scheduled}', unique_exclude_kind => true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := schematest.Audited(t)
			client, err := jobs.NewClient(pool, &jobs.Config{})
			if err != nil {
				t.Fatal(err)
			}
			first, err := client.Insert(t.Context(), c.args, &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			var id int64
			var skipped bool
			row := pool.QueryRow(t.Context(), `SELECT id, skipped FROM pelton.enqueue_result(`+c.sql+`)`)
			if err := row.Scan(&id, &skipped); err != nil {
				t.Fatal(err)
			}
			if !skipped || id != first.Job.ID {
				t.Errorf("SQL gave job %d, skipped %t; want %d of Go, true", id, skipped, first.Job.ID)
			}
			again, err := client.Insert(t.Context(), c.args, &c.opts)
			if err != nil {
				t.Fatal(err)
			}
			if !again.UniqueSkippedAsDuplicate {
				t.Error("Go does not find its own job")
			}
		})
	}
}

// TestInsertSQLTx enqueues in a database/sql transaction.
func TestInsertSQLTx(t *testing.T) {
	t.Parallel()
	pool := schematest.Audited(t)
	client, err := jobs.NewClient(pool, &jobs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	opts := &river.InsertOpts{
		Priority: 2, Queue: "mail", MaxAttempts: 7, Tags: []string{"red", "dark-blue"}, Metadata: []byte(`{"m": 1}`),
		ScheduledAt: time.Now().Add(time.Hour), UniqueOpts: river.UniqueOpts{ByArgs: true},
	}
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		result, err := client.InsertSQLTx(t.Context(), tx, wholeArgs{Z: `"<é`}, opts)
		if err != nil {
			t.Fatal(err)
		}
		if !commit {
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if _, err := client.JobGet(t.Context(), result.Job.ID); err == nil {
				t.Error("a rollback left the job")
			}
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		job, err := client.JobGet(t.Context(), result.Job.ID)
		if err != nil {
			t.Fatal(err)
		}
		if job.Priority != 2 || job.Queue != "mail" || job.MaxAttempts != 7 || len(job.Tags) != 2 ||
			job.State != rivertype.JobStateScheduled || string(job.EncodedArgs) != `{"z":"\"\u003cé","a":null,"b\u003c\u0026":null}` {
			t.Errorf("stored %+v, args %s", job, job.EncodedArgs)
		}
		if again, err := client.Insert(t.Context(), wholeArgs{Z: `"<é`}, opts); err != nil || !again.UniqueSkippedAsDuplicate {
			t.Errorf("Insert does not find the job: %+v, %v", again, err)
		}
	}
}
