package jobs_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type Welcome struct {
	Name string `json:"name"`
}

func (Welcome) Kind() string { return "welcome" }

// signUp stores a customer and enqueues the welcome mail: both, or neither.
func signUp(ctx context.Context, pool *pgxpool.Pool, client *jobs.Client, name string) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO customer (name) VALUES ($1)`, name); err != nil {
			return err
		}
		_, err := client.InsertTx(ctx, tx, Welcome{Name: name}, nil)
		return err
	})
}

// A job that is inserted in a transaction exists if and when that commits.
func ExampleClient_InsertTx() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `CREATE TABLE customer (name text PRIMARY KEY)`)
	check(err)

	mailed := make(chan string)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[Welcome]) error {
		mailed <- job.Args.Name
		return nil
	}))
	client, err := jobs.NewClient(pool, &jobs.Config{
		Queues:  map[string]jobs.QueueConfig{"default": {MaxWorkers: 100}},
		Workers: workers,
	})
	check(err)
	check(client.Start(ctx))

	check(signUp(ctx, pool, client, "Ada"))
	fmt.Println("welcome,", <-mailed)

	// The customer is there already: no row, no job.
	fmt.Println("refused:", signUp(ctx, pool, client, "Ada") != nil)

	check(signUp(ctx, pool, client, "Grace"))
	fmt.Println("welcome,", <-mailed)
	check(client.Stop(ctx))

	// Output:
	// welcome, Ada
	// refused: true
	// welcome, Grace
}
