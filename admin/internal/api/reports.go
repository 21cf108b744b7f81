package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs"
)

// addReports adds executors, the audit and partitions.
func (s *server) addReports() {
	add(s, operation{
		id: "executors-list", method: http.MethodGet, path: "/executors", tag: "executors", role: access.Viewer,
		summary: "List processes that work jobs, newest first",
	}, s.executorsList)
	add(s, operation{
		id: "audit-list", method: http.MethodGet, path: "/audit", tag: "audit", role: access.Viewer,
		summary: "List who changed what, newest first",
	}, s.auditList)
	add(s, operation{
		id: "partitions-list", method: http.MethodGet, path: "/partitions", tag: "partitions", role: access.Viewer,
		summary: "List the partitions of jobs, attempts, logs and ticks",
	}, s.partitionsList)
	add(s, operation{
		id: "partitions-maintain", method: http.MethodPost, path: "/partitions/maintain", tag: "partitions", role: access.Admin,
		summary: "Make partitions ahead and drop those past their retention, now", time: 2 * time.Minute,
		detail: "The server does this by itself, with the retention that it was started with, which holds here too.",
	}, s.partitionsMaintain)
}

type executorsListInput struct {
	Paging

	Ended bool `query:"ended" doc:"also those that have stopped or died"`
}

func (s *server) executorsList(ctx context.Context, in *executorsListInput) (*answer[Page[document.Executor]], error) {
	before, err := positionOf[int64]("executors", in.Cursor)
	if err != nil {
		return nil, err
	}
	params := &jobs.ExecutorListParams{Ended: in.Ended, Limit: in.Limit + 1}
	if before != nil {
		params.Before = *before
	}
	executors, err := s.Jobs.ExecutorList(ctx, params)
	if err != nil {
		return nil, err
	}
	page := pageOf("executors", document.NewExecutors(executors), in.Limit, func(e document.Executor) any { return e.ID })
	return &answer[Page[document.Executor]]{page}, nil
}

type auditListInput struct {
	Paging

	Target string    `query:"target" maxLength:"1000" doc:"only changes of this job id, queue, ..."`
	Action string    `query:"action" maxLength:"100" doc:"only this action: job.cancel, queue.pause, dead.redrive, ..."`
	Actor  string    `query:"actor" maxLength:"1000" doc:"only changes by this actor"`
	Since  time.Time `query:"since" doc:"only changes since, RFC 3339"`
}

func (s *server) auditList(ctx context.Context, in *auditListInput) (*answer[Page[document.AuditEntry]], error) {
	before, err := positionOf[int64]("audit", in.Cursor)
	if err != nil {
		return nil, err
	}
	params := &jobs.AuditListParams{Target: in.Target, Action: in.Action, Actor: in.Actor, Since: in.Since, Limit: in.Limit, Bytes: pageBytes}
	if before != nil {
		params.Before = *before
	}
	entries, more, err := s.Jobs.AuditPart(ctx, params)
	if err != nil {
		return nil, err
	}
	page := partOf("audit", document.NewAuditEntries(entries), more, func(e document.AuditEntry) any { return e.ID })
	return &answer[Page[document.AuditEntry]]{page}, nil
}

func (s *server) partitionsList(ctx context.Context, in *struct{ Paging }) (*answer[Page[document.Partition]], error) {
	keeper, err := s.Jobs.Keeper()
	if err != nil {
		return nil, err
	}
	all, err := keeper.List(ctx)
	if err != nil {
		return nil, err
	}
	list := document.NewPartitions(all)
	slices.SortFunc(list, func(a, b document.Partition) int { return cmp.Compare(a.Name, b.Name) })
	return answered(pageFrom("partitions", list, in.Paging, func(p document.Partition) string { return p.Name }))
}

func (s *server) partitionsMaintain(ctx context.Context, _ *struct{}) (*answer[document.Maintenance], error) {
	keeper, err := s.Jobs.Keeper()
	if err != nil {
		return nil, err
	}
	report, err := keeper.Maintain(ctx)
	if err = errors.Join(err, s.Jobs.AuditMaintenance(ctx, report)); err != nil {
		return nil, err
	}
	return &answer[document.Maintenance]{document.NewMaintenance(report)}, nil
}
