package flow

import (
	"context"
	"time"

	"github.com/peltonq/pelton/jobs/flow/follow"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// created is what the observer wants kept with a run that is about to be stored.
func (c *Client) created(ctx context.Context, p RunParams, version store.Version) string {
	if c.config.Observer == nil {
		return ""
	}
	return c.config.Observer.Created(ctx, follow.Run{Project: p.Project, Version: version.No, Flow: p.Flow}, p.Options.Params)
}

// observer is who follows a run; nil: nobody.
func (l *loaded) observer(c *Client) follow.Observer {
	if l.run.Trace == nil {
		return nil
	}
	return c.config.Observer
}

// followed is the run as its observer sees it.
func (l *loaded) followed() follow.Run {
	r := follow.Run{
		ID: l.run.ID, Project: l.run.Project, Version: l.run.Version, Flow: l.run.Flow, Kept: text(l.run.Trace), Resumed: orZero(l.run.ResumedAt),
	}
	waited := l.run.Status == decide.Preparing.String() || l.run.Status == decide.Queued.String()
	if waited && l.run.StartedAt != nil {
		r.Resumed = l.now // as this step writes it
	}
	return r
}

// followedBy are the keys of a node's job that tell whoever works it who follows the run.
func (s *step) followedBy(path string) map[string]string {
	if o := s.l.observer(s.e.c); o != nil {
		return o.NodeMetadata(s.l.followed(), path)
	}
	return nil
}

// noticeContext is what the run's notices are enqueued in.
func (s *step) noticeContext(ctx context.Context) context.Context {
	if o := s.l.observer(s.e.c); o != nil {
		return o.Context(ctx, s.l.followed())
	}
	return ctx
}

// tellEnded tells the observer of a run that a step has ended.
func (e *engine) tellEnded(l *loaded) {
	o := l.observer(e.c)
	if o == nil {
		return
	}
	m := l.machine
	ended := &follow.Ended{
		Run: l.followed(), Status: m.Run().Status.String(), Reason: m.Run().Reason, By: l.run.CreatedBy,
		Created: l.run.CreatedAt, Started: l.now, Ended: l.now, Nodes: make([]follow.Node, m.Len()),
	}
	if l.run.StartedAt != nil {
		ended.Started = *l.run.StartedAt
	}
	for n := range ended.Nodes {
		r, container := l.row(n), m.Spec(n).Container
		if m.IsInstance(n) {
			container = m.Node(n).Template
		}
		ended.Nodes[n] = follow.Node{
			Path: m.Path(n), Type: m.Spec(n).Type, Container: container, Status: r.Status, Reason: text(r.Reason), Try: r.Try, Attempt: r.Attempt,
			Queued: orZero(r.QueuedAt), Started: orZero(r.StartedAt), Ended: orZero(r.EndedAt),
		}
		if r.JobID != nil {
			ended.Nodes[n].Job = *r.JobID
		}
	}
	o.Ended(ended)
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
