package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

func (s *server) addQueues() {
	add(s, operation{
		id: "queues-list", method: http.MethodGet, path: "/queues", tag: "queues", role: access.Viewer,
		summary: "List queues by name, with what waits and runs in them",
		detail:  "Where more than 20,000 jobs wait, and counting them takes longer than 20 ms, counts may be up to a minute old: counted_at says when they were made.",
	}, s.queuesList)
	add(s, operation{
		id: "queues-get", method: http.MethodGet, path: "/queues/{queue}", tag: "queues", role: access.Viewer,
		summary: "Show a queue", detail: "A queue that nobody named, works or enqueued into is not found.",
	}, s.queuesGet)
	add(s, operation{
		id: "queues-pause", method: http.MethodPost, path: "/queues/{queue}/pause", tag: "queues", role: access.Operator,
		summary: "Keep executors from taking jobs of a queue; * is all", detail: "Jobs that run go on. The queue may be unknown yet.",
	}, s.queueVerb(s.Jobs.QueuePause))
	add(s, operation{
		id: "queues-resume", method: http.MethodPost, path: "/queues/{queue}/resume", tag: "queues", role: access.Operator,
		summary: "End a pause; * ends that of every queue", detail: "A queue stays paused while all are.",
	}, s.queueVerb(s.Jobs.QueueResume))
	add(s, operation{
		id: "queues-update", method: http.MethodPatch, path: "/queues/{queue}", tag: "queues", role: access.Operator,
		summary: "Set a queue's metadata",
	}, s.queuesUpdate)
}

// QueuePath names a queue.
type QueuePath struct {
	Queue string `path:"queue" maxLength:"64" doc:"name of the queue"`
}

func (s *server) queuesList(ctx context.Context, in *struct{ Paging }) (*answer[Page[document.Queue]], error) {
	counted, at, err := s.counts.get(ctx)
	if err != nil {
		return nil, err
	}
	all, err := document.QueuesCounted(ctx, s.Jobs, counted, at)
	if err != nil {
		return nil, err
	}
	return answered(pageFrom("queues", all, in.Paging, func(q document.Queue) string { return q.Name }))
}

func (s *server) queuesGet(ctx context.Context, in *QueuePath) (*answer[document.Queue], error) {
	counted, at, err := s.counts.get(ctx)
	if err != nil {
		return nil, err
	}
	return answered(document.QueueCounted(ctx, s.Jobs, in.Queue, counted, at))
}

func (s *server) queueVerb(
	do func(context.Context, string, *jobs.QueuePauseOpts) error,
) func(context.Context, *QueuePath) (*answer[document.QueueChanged], error) {
	return func(ctx context.Context, in *QueuePath) (*answer[document.QueueChanged], error) {
		before, err := document.LookAtQueue(ctx, s.Jobs, in.Queue)
		if err != nil {
			return nil, err
		}
		if err := do(ctx, in.Queue, nil); err != nil {
			return nil, err
		}
		after, err := document.LookAtQueue(ctx, s.Jobs, in.Queue)
		return answered(document.QueueChanged{Name: in.Queue, Paused: after.Paused, Known: before.Known}, err)
	}
}

// QueueUpdate is what to change of a queue.
type QueueUpdate struct {
	Metadata map[string]json.RawMessage `json:"metadata" doc:"instead of the metadata that the queue has"`
}

type queueUpdateInput struct {
	QueuePath

	Body QueueUpdate
}

func (s *server) queuesUpdate(ctx context.Context, in *queueUpdateInput) (*answer[document.Queue], error) {
	metadata, err := json.Marshal(in.Body.Metadata)
	if err != nil {
		return nil, err
	}
	if _, err := s.Jobs.QueueUpdate(ctx, in.Queue, &jobs.QueueUpdateParams{Metadata: metadata}); err != nil {
		return nil, err
	}
	return s.queuesGet(ctx, &in.QueuePath)
}
