package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (a *app) queue() *cobra.Command {
	listing := &cobra.Command{
		Use:   "list",
		Short: "List queues with what waits and runs in them",
		Args:  arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withClient(ctx, func(ctx context.Context, db database) error {
				queues, err := document.Queues(ctx, db.client)
				if err != nil {
					return err
				}
				return list(a, "QUEUE PAUSED AVAILABLE RUNNING SCHEDULED RETRYABLE PENDING", queues, func(q document.Queue) []any {
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
				before, err := document.LookAtQueue(ctx, db.client, args[0])
				if err != nil {
					return err
				}
				if err := do(ctx, db.client, args[0]); err != nil {
					return err
				}
				after, err := document.LookAtQueue(ctx, db.client, args[0])
				if err != nil {
					return err
				}
				answer := document.QueueChanged{Name: args[0], Paused: after.Paused, Known: before.Known}
				return a.document(answer, func(w io.Writer) { fmt.Fprintf(w, "queue %s %s\n", args[0], became(name, done, before, after)) })
			})
		}),
	}
}

// became says what pause or resume did.
func became(verb, done string, before, after document.QueueSeen) string {
	switch {
	case verb == "resume" && after.Paused:
		return "stays paused while all queues are: pelton queue resume '*'"
	case verb == "resume" && !before.Paused:
		return "was not paused"
	case verb == "pause" && !before.Known:
		return "is paused; nothing was known of it: no job is in it, and no executor that is alive works it"
	}
	return "is " + done
}
