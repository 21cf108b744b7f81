package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/jobs/internal/mark"
)

// step is one transaction that advances a run.
type step struct {
	e   *engine
	tx  pgx.Tx
	l   *loaded
	now time.Time // the database's

	effects decide.Effects
	timers  []store.Timer
	notices []notice.Args
}

// advance applies what reports say to a run, and tells whether it did: somebody else may be at it, who will see them all.
func (e *engine) advance(ctx context.Context, id int64) (moved bool, err error) {
	var cancel []int64
	err = e.c.store.Tx(ctx, func(tx pgx.Tx) error {
		run, now, err := e.c.store.TryLock(ctx, tx, id)
		if errors.Is(err, ErrNotFound) {
			return e.c.store.DropOrphans(ctx, tx, id) // nothing, if somebody else has locked it
		}
		if err != nil {
			return err
		}
		reports, err := e.c.store.Reports(ctx, tx, id, reportBatch)
		if err != nil || len(reports) == 0 {
			return err
		}
		moved = true
		l, err := e.load(ctx, tx, run)
		if err != nil {
			return err
		}
		l.now = now
		s := &step{e: e, tx: tx, l: l, now: now, effects: decide.Effects{FirstFailure: decide.None}}
		if err := s.take(ctx, reports); err != nil {
			return err
		}
		cancel = s.jobsOf(s.effects.Cancel)
		ids := make([]int64, len(reports))
		for i := range reports {
			ids[i] = reports[i].ID
		}
		return e.c.store.DeleteReports(ctx, tx, ids)
	})
	if err != nil {
		delete(e.runs, id) // what is in memory may be ahead of the rows
		return false, err
	}
	if l := e.runs[id]; moved && l != nil {
		l.run.Step++
	}
	if len(cancel) > 0 {
		e.cancel(ctx, cancel)
		if _, err := e.c.store.ReportMissed(ctx); err != nil { // those that had not begun
			return moved, err
		}
	}
	return moved, nil
}

// take applies reports and stores what follows.
func (s *step) take(ctx context.Context, reports []store.Report) error {
	var events []decide.Event
	for i := range reports {
		more, err := s.events(ctx, &reports[i])
		if err != nil {
			return err
		}
		events = append(events, more...)
	}
	s.apply(ctx, events...)
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, r := range s.effects.Retry {
		s.again(r)
	}
	if err := s.e.write(ctx, s.tx, s.l, s.effects, s.now); err != nil {
		return err
	}
	if err := s.e.c.store.SetTimers(ctx, s.tx, s.l.run.ID, s.timers); err != nil {
		return err
	}
	if n := s.effects.FirstFailure; n != decide.None {
		s.notify(notice.FirstFailure, s.l.machine.Path(n), s.l.machine.Node(n).Reason, s.l.options.Notify.FirstFailure)
	}
	if err := s.tellFollowers(ctx); err != nil {
		return err
	}
	if s.effects.Ended {
		if err := s.end(ctx); err != nil {
			return err
		}
	}
	return s.sendNotices(ctx)
}

// apply takes events into the machine and gathers the effects. A person's wish that is not possible any more is only logged: whoever
// asked saw the run as it was then.
func (s *step) apply(ctx context.Context, events ...decide.Event) {
	effects := s.l.machine.Apply(events...)
	for _, r := range effects.Refused {
		s.e.c.log.WarnContext(ctx, "a run cannot do what was asked", "run", s.l.run.ID, "why", r.Reason)
	}
	s.effects = s.l.machine.Merge(s.effects, effects)
}

// events are what a report means.
func (s *step) events(ctx context.Context, r *store.Report) ([]decide.Event, error) {
	if r.Outcome != nil {
		return s.jobEnded(r), nil
	}
	var nodes []int
	action := text(r.Action)
	switch action {
	case actRetry, actRerun, actSucceed:
		if err := json.Unmarshal(r.Args, &nodes); err != nil {
			return nil, fmt.Errorf("nodes of %s: %w", action, err)
		}
	}
	switch action {
	case actBegin:
		return s.begin(ctx)
	case actNext:
		return nil, s.next(ctx)
	case actKill:
		return one(decide.Kill{}), nil
	case actPause:
		return one(decide.Pause{}), nil
	case actResume:
		return one(decide.Resume{}), nil
	case actRelease:
		return s.released(ctx)
	case actRetry, actRerun, actSucceed:
		return s.unheld(ctx, wishes(action, nodes))
	case actAgain:
		var due decide.RetryDue
		if err := json.Unmarshal(r.Args, &due); err != nil {
			return nil, fmt.Errorf("retry of a flow: %w", err)
		}
		return one(due), nil
	}
	if no, ok := strings.CutPrefix(action, actSLA+":"); ok {
		return s.sla(no), nil
	}
	s.e.c.log.WarnContext(ctx, "nobody knows what was asked of a run", "run", s.l.run.ID, "action", action)
	return nil, nil
}

// wishes are the events of what a person wants to start over.
func wishes(action string, nodes []int) (events []decide.Event) {
	switch {
	case action == actRetry && len(nodes) == 0:
		return one(decide.RetryFailed{})
	case action == actRerun:
		return one(decide.Rerun{Nodes: nodes})
	}
	for _, n := range nodes {
		switch action {
		case actRetry:
			events = append(events, decide.RetryFlow{Node: n})
		case actSucceed:
			events = append(events, decide.MarkSucceeded{Node: n})
		}
	}
	return events
}

func one(e decide.Event) []decide.Event { return []decide.Event{e} }

// jobEnded is the event of a job's end, unless a newer job has taken its place.
func (s *step) jobEnded(r *store.Report) []decide.Event {
	if r.Node == nil || int(*r.Node) >= len(s.l.rows) {
		return nil
	}
	n := int(*r.Node)
	row := &s.l.rows[n]
	if row.JobID == nil || r.JobID == nil || *row.JobID != *r.JobID {
		return nil
	}
	row.StartedAt = r.StartedAt
	if r.EndedAt != nil {
		row.EndedAt = r.EndedAt
	}
	e := decide.Ended{Node: n, Try: s.l.machine.Node(n).Try, Reason: text(r.Error)}
	if r.Attempt != nil {
		e.Attempt = max(0, int(*r.Attempt)-1)
	}
	switch *r.Outcome {
	case "completed":
		outputs, err := outputsOf(s.l.machine.Spec(n), r.Output)
		e.Outcome, e.Outputs = decide.JobSucceeded, outputs
		if err != nil {
			e.Outcome, e.Reason = decide.JobFailed, err.Error()
		}
	case "cancelled":
		e.Outcome = decide.JobKilled
		if r.StartedAt == nil && (r.Attempt == nil || *r.Attempt == 0) { // no attempt had begun
			e.Outcome = decide.JobCancelled
		}
	default:
		e.Outcome = decide.JobFailed
	}
	return one(e)
}

// begin starts a run, or has it wait for the one that it follows.
func (s *step) begin(ctx context.Context) ([]decide.Event, error) {
	l := s.l
	if l.run.Before != nil {
		before, err := s.before(ctx)
		if err != nil {
			return nil, err
		}
		if l.run.Pipeline == 3 && before != nil && !before.ended {
			return nil, nil // the run before asks again when it ends
		}
		events := s.holds(before, true)
		s.limits()
		return append(events, decide.Begin{}), nil
	}
	s.limits()
	return one(decide.Begin{}), nil
}

// limits sets the timers of the run's SLAs.
func (s *step) limits() {
	for i, sla := range s.l.options.SLAs {
		if sla.Node == "" {
			s.timers = append(s.timers, store.Timer{Node: -1, What: actSLA + ":" + strconv.Itoa(i), After: time.Duration(sla.Within)})
		}
	}
}

// followed is what a run needs to know of the one before it.
type followed struct {
	ended bool
	nodes map[string]string // statuses by path
}

// before reads the run that this one follows; nil if it is gone.
func (s *step) before(ctx context.Context) (*followed, error) {
	run, err := s.e.c.store.Run(ctx, s.tx, *s.l.run.Before)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &followed{ended: run.EndedAt != nil, nodes: map[string]string{}}
	if f.ended || s.l.run.Pipeline == 3 {
		return f, nil
	}
	nodes, err := s.e.c.store.Nodes(ctx, s.tx, run.ID)
	for i := range nodes {
		f.nodes[nodes[i].Path] = nodes[i].Status
	}
	return f, err
}

// holds are the events that hold nodes whose turn has not come, or release those whose turn it is.
func (s *step) holds(before *followed, first bool) []decide.Event {
	var events []decide.Event
	for n := range s.l.graph.Nodes {
		if s.l.graph.Nodes[n].Type == graph.TypeFlow {
			continue
		}
		open := s.isOpen(n, before)
		switch {
		case !open && first:
			events = append(events, decide.Hold{Node: n, By: fmt.Sprintf("run %d (pipeline %d)", *s.l.run.Before, s.l.run.Pipeline)})
		case open && !first && s.l.machine.Node(n).Held != "":
			events = append(events, decide.Release{Node: n})
		}
	}
	return events
}

// isOpen tells whether a node may start for all that the run before still does.
func (s *step) isOpen(n int, before *followed) bool {
	if before == nil || before.ended {
		return true
	}
	done := func(path string) bool {
		status, found := before.nodes[path]
		return !found || decide.Status(status).Ended()
	}
	path := s.l.graph.Nodes[n].Path
	if !done(path) {
		return false
	}
	if s.l.run.Pipeline == 1 {
		return true
	}
	return !slices.ContainsFunc(s.l.children[n], func(child int) bool { return !done(s.l.graph.Nodes[child].Path) })
}

// released looks again at what the run before has done.
func (s *step) released(ctx context.Context) ([]decide.Event, error) {
	if s.l.run.Before == nil {
		return nil, nil
	}
	before, err := s.before(ctx)
	if err != nil {
		return nil, err
	}
	if s.l.run.Pipeline == 3 {
		if before == nil || before.ended {
			s.limits()
			return one(decide.Begin{}), nil
		}
		return nil, nil
	}
	return s.holds(before, false), nil
}

// unheld adds to what a person wants of a run that had ended the releases that nobody told it of since.
func (s *step) unheld(ctx context.Context, events []decide.Event) ([]decide.Event, error) {
	if s.l.run.Before == nil || s.l.run.Pipeline == 3 {
		return events, nil
	}
	more, err := s.released(ctx)
	return append(events, more...), err
}

// tellFollowers has the runs that follow this one look again if a node has ended.
func (s *step) tellFollowers(ctx context.Context) error {
	if !s.l.run.Followed {
		return nil
	}
	some := s.effects.Ended
	for _, n := range s.effects.Changed {
		some = some || s.l.machine.Node(n).Status.Ended()
	}
	if !some {
		return nil
	}
	followers, err := s.e.c.store.Followers(ctx, s.tx, s.l.run)
	if err != nil {
		return err
	}
	for _, id := range followers {
		if err := s.e.c.store.Ask(ctx, s.tx, id, -1, actRelease, nil); err != nil {
			return err
		}
	}
	return nil
}

// again sets the timer for the next attempt of a whole embedded flow.
func (s *step) again(r decide.Retry) {
	args, err := json.Marshal(decide.RetryDue(r))
	if err != nil {
		return // not reached: three numbers
	}
	wait := retryOf(s.l.machine.Spec(r.Node).Retry).Wait(r.Attempt)
	s.timers = append(s.timers, store.Timer{Node: r.Node, What: actAgain, After: wait, Args: args})
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

// jobsOf are the jobs of nodes.
func (s *step) jobsOf(nodes []int) []int64 {
	var ids []int64
	for _, n := range nodes {
		if id := s.l.rows[n].JobID; id != nil {
			ids = append(ids, *id)
		}
	}
	return ids
}

// next has the run begin that waits for the end of this one, if no other is live. It is a step of its own, because it takes the
// project's lock, which somebody's open transaction may hold.
func (s *step) next(ctx context.Context) error {
	db := s.e.c.store
	if err := db.LockProjectID(ctx, s.tx, s.l.run.ProjectID); err != nil {
		return err
	}
	live, err := db.LiveRuns(ctx, s.tx, s.l.run.ProjectID, s.l.run.Flow)
	if err != nil {
		return err
	}
	var next *store.Run
	for i := range live {
		r := &live[i]
		if decide.Status(r.Status) != decide.Queued {
			return nil
		}
		if next == nil || r.Priority > next.Priority {
			next = r
		}
	}
	if next == nil {
		return nil
	}
	if err := db.Prepare(ctx, s.tx, next.ID); err != nil {
		return err
	}
	return db.Ask(ctx, s.tx, next.ID, -1, actBegin, nil)
}

// end does what follows from the end of the run: the next one that waits begins, and people are told.
func (s *step) end(ctx context.Context) error {
	s.l.ended = true
	db := s.e.c.store
	if err := db.DropTimers(ctx, s.tx, s.l.run.ID, nil); err != nil {
		return err
	}
	if err := db.Ask(ctx, s.tx, s.l.run.ID, -1, actNext, nil); err != nil {
		return err
	}
	switch status := s.l.machine.Run().Status; status {
	case decide.Succeeded:
		s.notify(notice.Succeeded, "", "", slices.Concat(s.l.options.Notify.Success, s.l.graph.Opts.SuccessEmails, s.l.graph.Opts.NotifyEmails))
	case decide.Killed:
		s.notify(notice.Killed, "", "", s.failureTargets())
	default:
		s.notify(notice.Failed, "", s.failures(), s.failureTargets())
	}
	return nil
}

// failures names the nodes that failed, the first few.
func (s *step) failures() string {
	var b strings.Builder
	found := 0
	for n := range s.l.machine.Len() {
		if s.l.machine.Node(n).Status != decide.Failed {
			continue
		}
		if found++; found > 20 {
			b.WriteString("and more\n")
			break
		}
		fmt.Fprintf(&b, "%s failed: %s\n", s.l.machine.Path(n), s.l.machine.Node(n).Reason)
	}
	return b.String()
}

func (s *step) failureTargets() []string {
	return slices.Concat(s.l.options.Notify.Failure, s.l.graph.Opts.FailureEmails, s.l.graph.Opts.NotifyEmails)
}

func (s *step) notify(event, node, detail string, targets []string) {
	told := map[string]bool{}
	for _, to := range targets {
		if told[to] {
			continue
		}
		told[to] = true
		s.notices = append(s.notices, notice.Args{
			To: to, Event: event, Project: s.l.run.Project, Version: s.l.run.Version, Flow: s.l.run.Flow, Run: s.l.run.ID,
			Status: s.l.machine.Run().Status.String(), Node: node, Detail: detail, At: s.now,
		})
	}
}

func (s *step) sendNotices(ctx context.Context) error {
	if len(s.notices) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(s.notices))
	for i, n := range s.notices {
		params[i] = river.InsertManyParams{Args: n, InsertOpts: &river.InsertOpts{Queue: s.l.options.Queue, MaxAttempts: 10}}
	}
	for len(params) > 0 {
		_, err := s.e.c.jobs.InsertManyTx(ctx, s.tx, params)
		invalid, is := errors.AsType[*jobs.InvalidJobError](err)
		switch {
		case err == nil:
			return nil
		case !is || invalid.Index >= len(params):
			return fmt.Errorf("insert notices: %w", err)
		}
		s.e.c.log.ErrorContext(ctx, "a notice cannot be sent", "run", s.l.run.ID, "error", invalid.Err)
		params = slices.Delete(params, invalid.Index, invalid.Index+1)
	}
	return nil
}

// retryOf is a node's retry as its job's mark holds it.
func retryOf(r graph.Retry) *mark.Retry {
	return &mark.Retry{
		Backoff: time.Duration(r.Backoff).Seconds(), MaxBackoff: time.Duration(r.MaxBackoff).Seconds(), Jitter: r.Jitter,
	}
}

// start makes jobs of the nodes that are to start. Those that cannot be made fail, and what follows from that is started too.
func (s *step) start(ctx context.Context) error {
	var params []river.InsertManyParams
	var nodes []int
	var inserted []*rivertype.JobInsertResult
	for pending := s.effects.Start; ; {
		for len(pending) > 0 {
			var faults []decide.Event
			for _, n := range pending {
				p, err := s.jobOf(n)
				if err != nil {
					faults = append(faults, decide.CouldNotStart{Node: n, Reason: err.Error()})
					continue
				}
				params, nodes = append(params, p), append(nodes, n)
			}
			pending = s.couldNotStart(faults...)
		}
		if len(params) == 0 {
			return nil
		}
		var err error
		inserted, err = s.e.c.jobs.InsertManyTx(ctx, s.tx, params)
		if err == nil {
			break
		}
		var invalid *jobs.InvalidJobError // nothing was stored; tried again it would be as wrong
		if !errors.As(err, &invalid) || invalid.Index >= len(nodes) {
			return fmt.Errorf("insert the jobs of nodes: %w", err)
		}
		pending = s.couldNotStart(decide.CouldNotStart{Node: nodes[invalid.Index], Reason: invalid.Err.Error()})
		params, nodes = slices.Delete(params, invalid.Index, invalid.Index+1), slices.Delete(nodes, invalid.Index, invalid.Index+1)
	}
	for i, n := range nodes {
		r := s.l.row(n)
		if r.JobID != nil {
			r.Jobs = append(r.Jobs, *r.JobID)
		}
		r.JobID = &inserted[i].Job.ID
	}
	return nil
}

// couldNotStart tells the machine, and returns the nodes that are to start for it.
func (s *step) couldNotStart(faults ...decide.Event) []int {
	if len(faults) == 0 {
		return nil
	}
	effects := s.l.machine.Apply(faults...)
	s.effects = s.l.machine.Merge(s.effects, effects)
	return effects.Start
}

// jobOf makes the job of a node, with its parameters resolved.
func (s *step) jobOf(n int) (river.InsertManyParams, error) {
	l, m := s.l, s.l.machine
	spec, state := m.Spec(n), m.Node(n)
	args, err := l.argsOf(n)
	if err != nil {
		return river.InsertManyParams{}, err
	}
	k := mark.Mark{Run: l.run.ID, Node: int32(n), Path: m.Path(n), Try: state.Try, Timeout: s.timeout(n, spec), Retry: retryOf(spec.Retry)}
	metadata, err := k.Metadata()
	if err != nil {
		return river.InsertManyParams{}, err
	}
	opts := &river.InsertOpts{
		MaxAttempts: spec.Retry.Max + 1, Metadata: metadata, Queue: l.options.Queue, Priority: l.options.JobPriority,
	}
	if spec.Queue != "" {
		opts.Queue = spec.Queue
	}
	if spec.Priority != 0 {
		opts.Priority = spec.Priority
	}
	return river.InsertManyParams{Args: args, InsertOpts: opts}, nil
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

// nameOf is the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, ':')+1:] }
