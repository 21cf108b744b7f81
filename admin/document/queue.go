package document

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
)

// Queue is a queue that was named, is worked, or holds something.
type Queue struct {
	Name      string          `json:"name"`
	PausedAt  *time.Time      `json:"paused_at"`
	Available int64           `json:"available"`
	Running   int64           `json:"running"`
	Scheduled int64           `json:"scheduled"`
	Retryable int64           `json:"retryable"`
	Pending   int64           `json:"pending"`
	CountedAt time.Time       `json:"counted_at" doc:"when these were counted: of a long line some time ago"`
	Metadata  json.RawMessage `json:"metadata"`
}

// most is how many queues are looked at.
const most = 10_000

// Queues lists all queues by name, with what waits and runs in them.
func Queues(ctx context.Context, client *jobs.Client) ([]Queue, error) {
	at := time.Now()
	counts, err := client.JobCounts(ctx)
	if err != nil {
		return nil, err
	}
	return QueuesCounted(ctx, client, counts, at)
}

// QueuesCounted is Queues with what was counted in them at a time.
func QueuesCounted(ctx context.Context, client *jobs.Client, counts []jobs.QueueCounts, at time.Time) ([]Queue, error) {
	known, err := client.QueueList(ctx, jobs.NewQueueListParams().First(most))
	if err != nil {
		return nil, err
	}
	byName := map[string]*Queue{}
	get := func(name string) *Queue {
		if byName[name] == nil {
			byName[name] = &Queue{Name: name, CountedAt: at.UTC(), Metadata: json.RawMessage("{}")}
		}
		return byName[name]
	}
	for _, q := range known.Queues {
		get(q.Name).know(q)
	}
	for _, c := range counts {
		get(c.Queue).count(c)
	}
	all := make([]Queue, 0, len(byName))
	for _, j := range byName {
		all = append(all, *j)
	}
	slices.SortFunc(all, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// QueueCounted is one of the queues, with what was counted in all of them at a time. Of many queues QueuesCounted knows the first by name only.
// Errors: rivertype.ErrNotFound.
func QueueCounted(ctx context.Context, client *jobs.Client, name string, counts []jobs.QueueCounts, at time.Time) (Queue, error) {
	j := Queue{Name: name, CountedAt: at.UTC(), Metadata: json.RawMessage("{}")}
	counted := slices.IndexFunc(counts, func(c jobs.QueueCounts) bool { return c.Queue == name })
	if counted >= 0 {
		j.count(counts[counted])
	}
	q, err := client.QueueGet(ctx, name)
	switch {
	case err == nil:
		j.know(q)
	case counted < 0 || !errors.Is(err, rivertype.ErrNotFound):
		return Queue{}, err
	}
	return j, nil
}

func (j *Queue) know(q *rivertype.Queue) {
	j.PausedAt = UTC(q.PausedAt)
	if len(q.Metadata) > 0 {
		j.Metadata = q.Metadata
	}
}

func (j *Queue) count(c jobs.QueueCounts) {
	j.Available, j.Running = c.States[rivertype.JobStateAvailable], c.States[rivertype.JobStateRunning]
	j.Scheduled, j.Retryable = c.States[rivertype.JobStateScheduled], c.States[rivertype.JobStateRetryable]
	j.Pending = c.States[rivertype.JobStatePending]
}

// QueueSeen is what is known of a queue.
type QueueSeen struct{ Known, Paused bool }

// LookAtQueue tells whether a queue is known and paused. All queues together are always known.
func LookAtQueue(ctx context.Context, client *jobs.Client, name string) (QueueSeen, error) {
	q, err := client.QueueGet(ctx, name)
	switch {
	case err == nil:
		return QueueSeen{true, q.PausedAt != nil}, nil
	case name == jobs.AllQueues && errors.Is(err, rivertype.ErrNotFound):
		return QueueSeen{Known: true}, nil
	case !errors.Is(err, rivertype.ErrNotFound):
		return QueueSeen{}, err
	}
	counts, err := client.JobCounts(ctx)
	return QueueSeen{Known: slices.ContainsFunc(counts, func(c jobs.QueueCounts) bool { return c.Queue == name })}, err
}

// QueueChanged is how a queue is after a pause or its end.
type QueueChanged struct {
	Name   string `json:"name"`
	Paused bool   `json:"paused" doc:"also while all queues are"`
	Known  bool   `json:"known" doc:"somebody had named it, works it, or enqueued into it"`
}
