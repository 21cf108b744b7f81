package jobs_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
)

type BookArgs struct {
	Amount int `json:"amount"`
}

func (BookArgs) Kind() string { return "book" }

// CompleteTx commits a job's effect and its completion together: the effect happens once, whatever dies when.
func ExampleCompleteTx() {
	ctx, pool, done := exampleDatabase()
	defer done()
	_, err := pool.Exec(ctx, `CREATE TABLE booking (amount int)`)
	check(err)
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[BookArgs]) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO booking VALUES ($1)`, job.Args.Amount); err != nil {
				return err
			}
			_, err := jobs.CompleteTx(ctx, tx, job)
			return err
		})
	}))
	client, err := jobs.NewClient(pool, inOneSlot(workers))
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()
	check(client.Start(ctx))

	_, err = client.Insert(ctx, BookArgs{Amount: 42}, nil)
	check(err)
	fmt.Println(ended(events))
	check(client.Stop(ctx))
	var booked int
	check(pool.QueryRow(ctx, `SELECT sum(amount) FROM booking`).Scan(&booked))
	fmt.Println("booked", booked)

	// Output:
	// completed, attempt 1 of 25
	// booked 42
}
