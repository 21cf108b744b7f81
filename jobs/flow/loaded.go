package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// loaded is a run in memory: its rows, and the machine that decides.
type loaded struct {
	run      store.Run
	graph    *graph.Flow
	options  Options
	machine  *decide.Machine
	rows     []store.Node
	children [][]int           // by node
	global   map[string]string // parameters of the installation
	heaps    heaps
	now      time.Time // the database's, of the step under way
	ended    bool

	bytes int   // about what it takes
	kept  int   // the same, when it was kept
	used  int64 // the greater, the later
}

// numberOf is a node's number in the graph; of an instance, its template's.
func (l *loaded) numberOf(n int) int {
	if l.machine.IsInstance(n) {
		return l.machine.Node(n).Template
	}
	return n
}

// load returns the run as its rows say, from memory if nobody has changed it since.
func (e *engine) load(ctx context.Context, db store.DB, run store.Run) (*loaded, error) {
	if l := e.memory.get(run); l != nil {
		return l, nil
	}
	l, err := e.c.read(ctx, db, run)
	if err != nil {
		return nil, err
	}
	l.machine.Limit(e.stepNodes)
	return l, nil
}

// read makes a run's machine from its rows.
func (c *Client) read(ctx context.Context, db store.DB, run store.Run) (*loaded, error) {
	l := &loaded{run: run, global: c.config.Params, heaps: c.heaps}
	if err := json.Unmarshal(run.Options, &l.options); err != nil {
		return nil, fmt.Errorf("options of run %d: %w", run.ID, err)
	}
	plan, err := c.plan(ctx, db, run.VersionID, run.Flow)
	if err != nil {
		return nil, err
	}
	l.graph, l.children = plan.Flow(), plan.children
	if l.rows, err = c.store.Nodes(ctx, db, run.ID); err != nil {
		return nil, err
	}
	status, err := decide.ParseStatus(run.Status)
	if err != nil {
		return nil, err
	}
	nodes := make([]decide.Node, len(l.rows))
	for i := range l.rows {
		if nodes[i], err = nodeOfRow(&l.rows[i]); err != nil {
			return nil, fmt.Errorf("node %s of run %d: %w", l.rows[i].Path, run.ID, err)
		}
		l.bytes += sizeOf(&l.rows[i])
	}
	disabled := make(map[string]bool, len(l.options.Disabled))
	for _, path := range l.options.Disabled {
		disabled[path] = true
	}
	if l.machine, err = plan.Machine(decide.Run{Status: status, Reason: text(run.Reason), Settings: l.settings(), Disabled: disabled}, nodes); err != nil {
		return nil, err
	}
	l.machine.UseInputs(l.input)
	return l, nil
}

// settings are the flow's, where the run's options do not say otherwise.
func (l *loaded) settings() decide.Settings {
	s := decide.DefaultSettings(l.run.Format, l.graph.Opts)
	if o := l.options; o.OnFailure != "" {
		s.OnFailure = o.OnFailure
	}
	if o := l.options; o.OnCancelledEnd != "" {
		s.OnCancelledEnd = o.OnCancelledEnd
	}
	if o := l.options; o.MaxParallel != 0 {
		s.MaxParallel = o.MaxParallel
	}
	return s
}

func nodeOfRow(r *store.Node) (decide.Node, error) {
	status, err := decide.ParseStatus(r.Status)
	if err != nil {
		return decide.Node{}, err
	}
	n := decide.Node{Status: status, Try: r.Try, Attempt: r.Attempt, Reason: text(r.Reason), Held: text(r.Held), Item: text(r.Item)}
	if r.Template != nil {
		n.Template = int(*r.Template)
	}
	if r.Index != nil {
		n.Index = int(*r.Index)
	}
	if len(r.Outputs) > 0 {
		if err := json.Unmarshal(r.Outputs, &n.Outputs); err != nil {
			return decide.Node{}, fmt.Errorf("outputs: %w", err)
		}
	}
	return n, nil
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// row is a node's row, made if the node is a new instance.
func (l *loaded) row(n int) *store.Node {
	for n >= len(l.rows) {
		l.rows = append(l.rows, store.Node{No: int32(len(l.rows))})
		l.bytes += sizeOf(&l.rows[len(l.rows)-1])
	}
	return &l.rows[n]
}

// sync brings the rows of these nodes in step with the machine, and counts those that have ended.
func (l *loaded) sync(numbers []int, now time.Time, stats *StepStats) error {
	for _, n := range numbers {
		state := l.machine.Node(n)
		r := l.row(n)
		before := sizeOf(r)
		r.Path = l.machine.Path(n)
		if l.machine.IsInstance(n) {
			r.Template, r.Index, r.Item = new(int32(state.Template)), new(int32(state.Index)), &state.Item
		}
		stats.countEnd(decide.Status(r.Status), state.Status, r.Try != state.Try)
		outline(r, state, now)
		r.Outputs = nil
		if state.Outputs != nil {
			b, err := json.Marshal(state.Outputs)
			if err != nil {
				return fmt.Errorf("outputs of %s: %w", r.Path, err)
			}
			r.Outputs = b
		}
		l.bytes += sizeOf(r) - before
	}
	return nil
}

// picked returns the rows of these nodes.
func (l *loaded) picked(numbers []int) []store.Node {
	rows := make([]store.Node, len(numbers))
	for i, n := range numbers {
		rows[i] = l.rows[n]
	}
	return rows
}

// write stores what changed.
func (e *engine) write(ctx context.Context, tx pgx.Tx, l *loaded, effects decide.Effects, now time.Time, stats *StepStats) error {
	for _, list := range [][]int{effects.Changed, effects.New} {
		if err := l.sync(list, now, stats); err != nil {
			return err
		}
	}
	if err := e.c.store.AddNodes(ctx, tx, l.run.ID, l.picked(effects.New)); err != nil {
		return err
	}
	if err := e.c.store.WriteNodes(ctx, tx, l.run.ID, l.picked(effects.Changed)); err != nil {
		return err
	}
	status, reason := l.machine.Run().Status, orNil(l.machine.Run().Reason)
	begun := status != decide.Preparing && status != decide.Queued
	return e.c.store.WriteRun(ctx, tx, l.run.ID, status.String(), reason, begun, status.Ended(), now)
}

// outline brings a row's status and times in step with a node's state.
func outline(r *store.Node, state *decide.Node, now time.Time) {
	was, again := decide.Status(r.Status), r.Try != state.Try
	if r.Try != state.Try && was.Ended() { // started over, maybe to end in the same step
		r.QueuedAt, r.StartedAt, r.EndedAt = nil, nil, nil
	}
	r.Status, r.Try, r.Attempt = state.Status.String(), state.Try, state.Attempt
	r.Reason, r.Held = orNil(state.Reason), orNil(state.Held)
	switch s := state.Status; {
	case s == decide.Ready || s == decide.Disabled: // to be started, maybe once more
		r.QueuedAt, r.StartedAt, r.EndedAt = nil, nil, nil
	case s.Ended():
		if r.EndedAt == nil || again { // of a job it is known from its report
			r.EndedAt = &now
		}
	case s == decide.Running && was != decide.Running: // an embedded flow, a for_each
		r.StartedAt, r.EndedAt = &now, nil
	case s == decide.Queued && was != decide.Queued:
		r.QueuedAt, r.StartedAt, r.EndedAt = &now, nil, nil
	}
}
