package flow

import (
	"fmt"
	"strconv"
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

// sla is what a limit of time means when it has come.
func (s *step) sla(no string) []decide.Event {
	i, err := strconv.Atoi(no)
	if err != nil || i < 0 || i >= len(s.l.options.SLAs) {
		return nil
	}
	sla := s.l.options.SLAs[i]
	status := s.l.machine.Run().Status
	if sla.Node != "" {
		n := s.l.machine.Number(sla.Node)
		if n == decide.None {
			return nil
		}
		status = s.l.machine.Node(n).Status
	}
	if status.Ended() && (!sla.Succeed || status.Success()) {
		return nil
	}
	if sla.Alert {
		want := "end"
		if sla.Succeed {
			want = "succeed"
		}
		s.notify(notice.SLAMissed, sla.Node, fmt.Sprintf("it was to %s within %v, and is %s", want, time.Duration(sla.Within), status), s.failureTargets())
	}
	if sla.Kill && sla.Node == "" {
		return one(decide.Kill{})
	}
	return nil // a node's job has the limit as its own timeout
}

// timeout is the limit of one attempt in seconds: the node's own, or that of an SLA that kills.
func (s *step) timeout(n int, spec *graph.Node) float64 {
	limit := time.Duration(spec.Timeout)
	for i, sla := range s.l.options.SLAs {
		if sla.Node == "" || sla.Node != s.l.machine.Path(n) && sla.Node != spec.Path {
			continue
		}
		if sla.Alert && s.l.machine.Node(n).Try == 0 {
			s.timers = append(s.timers, store.Timer{Node: n, What: actSLA + ":" + strconv.Itoa(i), After: time.Duration(sla.Within)})
		}
		if sla.Kill && (limit == 0 || time.Duration(sla.Within) < limit) {
			limit = time.Duration(sla.Within)
		}
	}
	return limit.Seconds()
}
