package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/jobs"
)

func (a *app) queue() *cobra.Command {
	listing := &cobra.Command{
		Use:   "list",
		Short: "List queues with what waits and runs in them",
		Args:  arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				queues, err := queues(ctx, db.client)
				if err != nil {
					return err
				}
				return list(a, "QUEUE PAUSED AVAILABLE RUNNING SCHEDULED RETRYABLE PENDING", queues, func(q queueJSON) []any {
					return []any{q.Name, optionalMoment(q.PausedAt), q.Available, q.Running, q.Scheduled, q.Retryable, q.Pending}
				})
			})
		}),
	}
	pause := a.queueVerb("pause", "Keep executors from taking jobs of a queue; * is all", "paused",
		func(ctx context.Context, client *jobs.Client, name string) error {
			return client.QueuePause(ctx, name, nil)
		})
	resume := a.queueVerb("resume", "End a pause; * ends that of every queue", "resumed",
		func(ctx context.Context, client *jobs.Client, name string) error {
			return client.QueueResume(ctx, name, nil)
		})
	return parent(&cobra.Command{Use: "queue", Short: "List, pause and resume queues", GroupID: groupOperate}, listing, pause, resume)
}

func (a *app) queueVerb(name, short, done string, do func(context.Context, *jobs.Client, string) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " QUEUE", Short: short, Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				before, err := look(ctx, db.client, args[0])
				if err != nil {
					return err
				}
				if err := do(ctx, db.client, args[0]); err != nil {
					return err
				}
				after, err := look(ctx, db.client, args[0])
				if err != nil {
					return err
				}
				answer := queueChangedJSON{args[0], after.paused, before.known}
				return a.document(answer, func(w io.Writer) { fmt.Fprintf(w, "queue %s %s\n", args[0], became(name, done, before, after)) })
			})
		}),
	}
}

type queueChangedJSON struct {
	Name   string `json:"name"`
	Paused bool   `json:"paused"` // also while all queues are
	Known  bool   `json:"known"`  // somebody had named it, works it, or enqueued into it
}

// queueSeen is what is known of a queue.
type queueSeen struct{ known, paused bool }

func look(ctx context.Context, client *jobs.Client, name string) (queueSeen, error) {
	q, err := client.QueueGet(ctx, name)
	switch {
	case err == nil:
		return queueSeen{true, q.PausedAt != nil}, nil
	case name == jobs.AllQueues && errors.Is(err, rivertype.ErrNotFound):
		return queueSeen{known: true}, nil
	case !errors.Is(err, rivertype.ErrNotFound):
		return queueSeen{}, err
	}
	counts, err := client.JobCounts(ctx)
	return queueSeen{known: slices.ContainsFunc(counts, func(c jobs.QueueCounts) bool { return c.Queue == name })}, err
}

// became says what pause or resume did.
func became(verb, done string, before, after queueSeen) string {
	switch {
	case verb == "resume" && after.paused:
		return "stays paused while all queues are: pelton queue resume '*'"
	case verb == "resume" && !before.paused:
		return "was not paused"
	case verb == "pause" && !before.known:
		return "is paused; nothing was known of it: no job is in it, and no executor that is alive works it"
	}
	return "is " + done
}

// queueJSON is a queue that was named, is worked, or holds something.
type queueJSON struct {
	Name      string          `json:"name"`
	PausedAt  *time.Time      `json:"paused_at"`
	Available int64           `json:"available"`
	Running   int64           `json:"running"`
	Scheduled int64           `json:"scheduled"`
	Retryable int64           `json:"retryable"`
	Pending   int64           `json:"pending"`
	Metadata  json.RawMessage `json:"metadata"`
}

func queues(ctx context.Context, client *jobs.Client) ([]queueJSON, error) {
	known, err := client.QueueList(ctx, jobs.NewQueueListParams().First(10_000))
	if err != nil {
		return nil, err
	}
	counts, err := client.JobCounts(ctx)
	if err != nil {
		return nil, err
	}
	byName := map[string]*queueJSON{}
	get := func(name string) *queueJSON {
		if byName[name] == nil {
			byName[name] = &queueJSON{Name: name, Metadata: json.RawMessage("{}")}
		}
		return byName[name]
	}
	for _, q := range known.Queues {
		j := get(q.Name)
		j.PausedAt = utc(q.PausedAt)
		if len(q.Metadata) > 0 {
			j.Metadata = q.Metadata
		}
	}
	for _, c := range counts {
		j := get(c.Queue)
		j.Available, j.Running = c.States[rivertype.JobStateAvailable], c.States[rivertype.JobStateRunning]
		j.Scheduled, j.Retryable = c.States[rivertype.JobStateScheduled], c.States[rivertype.JobStateRetryable]
		j.Pending = c.States[rivertype.JobStatePending]
	}
	all := make([]queueJSON, 0, len(byName))
	for _, j := range byName {
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b queueJSON) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}
