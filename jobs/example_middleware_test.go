package jobs_test

import (
	"context"
	"fmt"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

type ResizeArgs struct{}

func (ResizeArgs) Kind() string { return "resize" }

// traced is a River middleware around inserts and work.
type traced struct{ river.MiddlewareDefaults }

func (*traced) InsertMany(
	ctx context.Context, many []*rivertype.JobInsertParams, doInner func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	many[0].Metadata = []byte(`{"trace": "71"}`)
	return doInner(ctx)
}

func (*traced) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	fmt.Printf("work begins, %s\n", job.Metadata)
	err := doInner(ctx)
	fmt.Println("work ended:", err)
	return err
}

// Hooks and middleware written for River plug in.
func Example_middlewareAndHooks() {
	ctx, pool, done := exampleDatabase()
	defer done()
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[ResizeArgs]) error {
		fmt.Println("resizing")
		return nil
	}))
	config := inOneSlot(workers)
	config.Middleware = []rivertype.Middleware{&traced{}}
	config.Hooks = []rivertype.Hook{
		river.HookInsertBeginFunc(func(_ context.Context, params *rivertype.JobInsertParams) error {
			fmt.Println("hook: insert", params.Kind)
			return nil
		}),
		river.HookWorkBeginFunc(func(_ context.Context, job *rivertype.JobRow) error {
			fmt.Println("hook: work", job.Kind)
			return nil
		}),
	}
	client, err := jobs.NewClient(pool, config)
	check(err)
	events, cancel := client.Subscribe(river.EventKindJobCompleted)
	defer cancel()

	_, err = client.Insert(ctx, ResizeArgs{}, nil)
	check(err)
	check(client.Start(ctx))
	<-events
	check(client.Stop(ctx))

	// Output:
	// hook: insert resize
	// work begins, {"trace": "71"}
	// hook: work resize
	// resizing
	// work ended: <nil>
}
