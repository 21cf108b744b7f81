package jobs_test

import (
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/peltonq/pelton/jobs"
)

type ShipArgs struct {
	Order int `json:"order"`
}

func (ShipArgs) Kind() string { return "ship" }

// InsertSQLTx enqueues in a transaction of database/sql, of any driver; so GORM, sqlx, ent and others can enqueue too.
func ExampleClient_InsertSQLTx() {
	ctx, pool, done := exampleDatabase()
	defer done()
	client, err := jobs.NewClient(pool, nil)
	check(err)
	db := stdlib.OpenDBFromPool(pool)
	defer func() { check(db.Close()) }()

	tx, err := db.BeginTx(ctx, nil)
	check(err)
	inserted, err := client.InsertSQLTx(ctx, tx, ShipArgs{Order: 7}, nil)
	check(err)
	check(tx.Commit())
	job, err := client.JobGet(ctx, inserted.Job.ID)
	check(err)
	fmt.Printf("%s %s %s\n", job.State, job.Kind, job.EncodedArgs)

	// Output:
	// available ship {"order":7}
}
