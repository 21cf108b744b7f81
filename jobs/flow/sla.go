package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// limits sets the timers of the run's SLAs.
func (s *step) limits() {
	for i, sla := range s.l.options.SLAs {
		if sla.Node == "" {
			s.timers = append(s.timers, store.Timer{Node: -1, What: actSLA + ":" + strconv.Itoa(i), After: time.Duration(sla.Within)})
		}
	}
}

// sla is what a limit of time means when it has come, for a node or for the run (decide.None).
func (s *step) sla(ctx context.Context, no string, n int) []decide.Event {
	sla, found := s.slaOf(no)
	run := s.l.machine.Run().Status
	switch {
	case !found || run == decide.Preparing || run == decide.Queued: // of a run that is to go on the time begins anew
		return nil
	case n != decide.None:
		s.due = append(s.due, dueSLA{sla, n})
		return nil
	}
	s.alert(ctx, sla, n)
	if sla.Kill && !run.Ended() {
		return one(decide.Kill{Reason: fmt.Sprintf("the run was killed: SLA of %v", time.Duration(sla.Within))})
	}
	return nil
}

// limitFlow sets the timer of an embedded flow's timeout.
func (s *step) limitFlow(r decide.Retry) {
	args, err := json.Marshal(r)
	if err != nil {
		return // not reached: three numbers
	}
	limit := time.Duration(s.l.machine.Spec(r.Node).Timeout)
	s.timers = append(s.timers, store.Timer{Node: r.Node, What: actTimeout, After: limit, Args: args})
}

// timedOut is what it means that the timeout of an embedded flow's attempt has passed.
func (s *step) timedOut(r decide.Retry) []decide.Event {
	if r.Node < 0 || r.Node >= len(s.l.graph.Nodes) {
		return nil
	}
	spec := s.l.machine.Spec(r.Node)
	reason := fmt.Sprintf("%s took longer than its timeout of %v", spec.Path, time.Duration(spec.Timeout))
	return one(decide.TimedOut{Node: r.Node, Try: r.Try, Attempt: r.Attempt, Reason: reason})
}

// dueSLA is a limit of a node that has come. It is looked at when the machine knows all that has happened until now.
type dueSLA struct {
	sla  SLA
	node int
}

// missed tells of limits of nodes that have come. To kill is the business of the node's job, which has the limit as its own timeout.
func (s *step) missed(ctx context.Context) {
	for _, d := range s.due {
		if d.node >= len(s.l.rows) {
			continue
		}
		if status := s.l.machine.Node(d.node).Status; !status.Ended() || d.sla.Succeed && !status.Success() || s.late(d.sla, d.node) {
			s.alert(ctx, d.sla, d.node)
		}
	}
}

func (s *step) slaOf(no string) (SLA, bool) {
	i, err := strconv.Atoi(no)
	if err != nil || i < 0 || i >= len(s.l.options.SLAs) {
		return SLA{}, false
	}
	return s.l.options.SLAs[i], true
}

// alert notes that a limit was missed, and tells it, if it is to be told.
func (s *step) alert(ctx context.Context, sla SLA, n int) {
	want, node, is := "end", "", "is "+s.l.machine.Run().Status.String()
	if sla.Succeed {
		want = "succeed"
	}
	if n != decide.None {
		node, is = s.l.machine.Path(n), "is "+s.l.machine.Node(n).Status.String()
		if s.l.machine.Node(n).Status == decide.Queued { // also while its job runs
			is = "has not ended"
		}
	}
	detail := fmt.Sprintf("it was to %s within %v, and %s", want, time.Duration(sla.Within), is)
	s.misses = append(s.misses, store.Miss{Within: time.Duration(sla.Within), Node: node, Detail: detail})
	if sla.Alert {
		s.notify(notice.SLAMissed, node, detail, s.failureTargets(ctx))
	}
}

// late tells whether a node that has ended took longer than it was to, also if it was killed for that before the alert's time had come.
func (s *step) late(sla SLA, n int) bool {
	within := time.Duration(sla.Within)
	const rounded = time.Millisecond
	row := &s.l.rows[n]
	took := func(from *time.Time) time.Duration {
		if from == nil || row.EndedAt == nil {
			return 0
		}
		return row.EndedAt.Sub(*from)
	}
	return took(row.QueuedAt) > within || sla.Kill && took(row.StartedAt) >= within-rounded
}

// dropLimits ends all timers of the run, which has ended, and tells of limits that were missed and not told of yet.
func (s *step) dropLimits(ctx context.Context) error {
	dropped, err := s.e.c.store.DropTimers(ctx, s.tx, s.l.run.ID)
	if err != nil {
		return err
	}
	for _, timer := range dropped {
		no, is := strings.CutPrefix(timer.What, actSLA+":")
		if sla, found := s.slaOf(no); is && found && (timer.Node == decide.None && timer.Due || timer.Node != decide.None && s.late(sla, timer.Node)) {
			s.alert(ctx, sla, timer.Node)
		}
	}
	return nil
}

// timeout is the limit of one attempt in seconds: the node's own, or that of an SLA that kills.
func (s *step) timeout(n int, spec *graph.Node) float64 {
	limit := time.Duration(spec.Timeout)
	for i, sla := range s.l.options.SLAs {
		if sla.Node == "" || sla.Node != s.l.machine.Path(n) && sla.Node != spec.Path {
			continue
		}
		if sla.Alert { // a job that is made anew has its own time to end, but the node no more to succeed
			s.timers = append(s.timers, store.Timer{Node: n, What: actSLA + ":" + strconv.Itoa(i), After: time.Duration(sla.Within), Keep: sla.Succeed})
		}
		if sla.Kill && (limit == 0 || time.Duration(sla.Within) < limit) {
			limit = time.Duration(sla.Within)
		}
	}
	return limit.Seconds()
}
