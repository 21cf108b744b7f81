package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Builder makes a flow in code, from the same rules as those for files. Its methods add a node, or say more about the node that
// was added last, and return the builder, so that they chain. What is wrong is told by Build, all of it. A builder is for one
// goroutine.
type Builder struct {
	name   string
	config graph.Config
	opts   graph.Options
	nodes  []*draft.Node
	faults []graph.Fault
}

// Flow is a flow that was built and has no faults.
type Flow struct {
	graph *graph.Flow
}

// Retry says how often a node is tried again after a failure, and when.
type Retry struct {
	// Max is how many tries may follow the first. Zero beats a default of the flow.
	Max int

	// Backoff is the time to wait before the next try. Zero: none.
	Backoff time.Duration

	// MaxBackoff, if set, has Backoff doubled each time up to this. Zero: Backoff stays as it is.
	MaxBackoff time.Duration

	// Jitter, from 0 to 1, shortens each wait at random by up to this part.
	Jitter float64
}

// Fault is one thing that is wrong with a flow or an upload.
type Fault = graph.Fault

// InvalidFlowError says everything that is wrong with a flow.
type InvalidFlowError struct {
	Flow   string
	Faults []Fault
}

func (e *InvalidFlowError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.String()
	}
	return fmt.Sprintf("flow %q: %s", e.Flow, strings.Join(lines, "\n"))
}

// New starts a flow.
func New(name string) *Builder { return &Builder{name: name} }

// Param sets a parameter of the whole flow. A run may set it to something else.
func (b *Builder) Param(key, value string) *Builder {
	if b.config == nil {
		b.config = graph.Config{}
	}
	b.config[key] = value
	return b
}

// OnFailure sets what becomes of a run when a node has failed. Defaults to FinishCurrent.
func (b *Builder) OnFailure(action OnFailure) *Builder {
	b.opts.OnFailure = action
	return b
}

// OnCancelledEnd sets how a run ends in which nothing failed and an end node was cancelled by its condition. Defaults to EndSucceeded.
func (b *Builder) OnCancelledEnd(end OnCancelledEnd) *Builder {
	b.opts.OnCancelledEnd = end
	return b
}

// MaxParallel sets how many jobs of one run may run at a time. Defaults to 10.
func (b *Builder) MaxParallel(jobs int) *Builder {
	if jobs < 1 {
		b.fault("", "max_parallel is %d, want 1 or more", jobs)
	}
	b.opts.MaxParallel = jobs
	return b
}

// Command adds a node that runs programs, in turn until one does not exit with 0. There is no shell: words are split at spaces,
// '...' and "..." group.
func (b *Builder) Command(name, line string, more ...string) *Builder {
	config := graph.Config{"command": line}
	for i, line := range more {
		config[fmt.Sprintf("command.%d", i+1)] = line
	}
	return b.Node(name, graph.TypeCommand, config)
}

// Job adds a node that is a job of the caller's own. Texts in its args may hold parameters; what a run sets for the node
// is added to args that are an object, as texts, where they do not have it. Of the options that the args bring
// along (river.JobArgsWithInsertOpts), queue, priority and the number of attempts count; a job without any is tried once.
func (b *Builder) Job(name string, args river.JobArgs) *Builder {
	if args == nil {
		b.fault(name, "has no args")
		return b.add(&draft.Node{Name: name, Node: graph.Node{Type: graph.TypeNoop}})
	}
	kind := args.Kind()
	data, err := json.Marshal(args)
	if err != nil {
		b.fault(name, "args of kind %q: %v", kind, err)
	}
	if kind == graph.TypeNoop || kind == graph.TypeFlow || kind == graph.TypeJavaProcess {
		b.fault(name, "kind %q is the name of a built-in type of node", kind)
	}
	n := &draft.Node{Name: name, Node: graph.Node{Type: kind, Args: data}}
	if with, ok := args.(river.JobArgsWithInsertOpts); ok {
		opts := with.InsertOpts()
		n.Queue, n.Priority = opts.Queue, opts.Priority
		if opts.MaxAttempts > 0 {
			n.Retry.Max, n.Retry.Set = opts.MaxAttempts-1, true
		}
		if !reflect.ValueOf(opts.UniqueOpts).IsZero() {
			b.fault(name, "args of kind %q ask for a unique job, which a node cannot be: skipped, it would never end", kind)
		}
	}
	return b.add(n)
}

// Noop adds a node that does nothing: something for others to come after.
func (b *Builder) Noop(name string) *Builder { return b.Node(name, graph.TypeNoop, nil) }

// Node adds a node of any type, as a project's files would: a job kind whose args are made of the config and of the
// parameters that a run sets for the node, or a type that the
// server maps to a command.
func (b *Builder) Node(name, typ string, config map[string]string) *Builder {
	return b.add(&draft.Node{Name: name, Node: graph.Node{Type: typ, Config: maps.Clone(config)}})
}

// Flow adds a flow within this one, as it is now. Its parameters become those of its nodes; their paths are "name:node".
func (b *Builder) Flow(name string, inner *Builder) *Builder {
	set := &draft.Set{}
	for _, n := range inner.nodes {
		c := *n
		set.Nodes = append(set.Nodes, &c)
	}
	for _, f := range inner.faults {
		f.Node = strings.TrimSuffix(name+":"+f.Node, ":")
		b.faults = append(b.faults, f)
	}
	if !reflect.ValueOf(inner.opts).IsZero() {
		b.fault(name, "the failure action, the end after a cancelled end node and max_parallel of an embedded flow are not used: set those of the outer flow")
	}
	return b.add(&draft.Node{Name: name, Nodes: set, Node: graph.Node{Type: graph.TypeFlow, Config: maps.Clone(inner.config)}})
}

// After has the node wait for others of the same flow.
func (b *Builder) After(names ...string) *Builder {
	return b.last("After", func(n *draft.Node) {
		for _, name := range names {
			n.After = append(n.After, draft.Parent{Name: name})
		}
	})
}

// When sets the node's condition, such as "one_success && ${load:rows} > 0". Defaults to all_success.
func (b *Builder) When(condition string) *Builder {
	return b.last("When", func(n *draft.Node) { n.Condition = condition })
}

// With sets a parameter of the node.
func (b *Builder) With(key, value string) *Builder {
	return b.last("With", func(n *draft.Node) {
		n.Config = maps.Clone(n.Config)
		if n.Config == nil {
			n.Config = graph.Config{}
		}
		n.Config[key] = value
	})
}

// Queue sets the node's queue, or that of the nodes in an embedded flow. Defaults to that of the embedded flow around it, and then to the
// run's.
func (b *Builder) Queue(queue string) *Builder {
	return b.last("Queue", func(n *draft.Node) { n.Queue = queue })
}

// Priority sets the node's priority, or that of the nodes in an embedded flow: 1, first, to 4. Defaults to that of the embedded flow around
// it, and then to the run's.
func (b *Builder) Priority(priority int) *Builder {
	return b.last("Priority", func(n *draft.Node) {
		if n.Priority = priority; priority == 0 {
			b.fault(n.Name, "priority is 0, want 1 (first) to 4")
		}
	})
}

// Timeout limits each attempt of the node, of an embedded flow as a whole. Defaults to none.
func (b *Builder) Timeout(limit time.Duration) *Builder {
	return b.last("Timeout", func(n *draft.Node) { n.Timeout = graph.Duration(limit) })
}

// Retry has the node tried again when it fails; an embedded flow as a whole.
func (b *Builder) Retry(r Retry) *Builder {
	return b.last("Retry", func(n *draft.Node) {
		n.Retry = graph.Retry{
			Max: r.Max, Set: true, Jitter: r.Jitter,
			Backoff: graph.Duration(r.Backoff), MaxBackoff: graph.Duration(r.MaxBackoff),
		}
	})
}

// ForEach runs the node once for each item, which is its parameter "item". There may be none.
func (b *Builder) ForEach(items ...string) *Builder {
	return b.last("ForEach", func(n *draft.Node) {
		n.ForEach = &graph.ForEach{Items: append([]string{}, items...)}
	})
}

// ForEachOf runs the node once for each element of a JSON array that a parent has put out under a key.
func (b *Builder) ForEachOf(parent, key string) *Builder {
	return b.last("ForEachOf", func(n *draft.Node) { n.ForEach = &graph.ForEach{Node: parent, Key: key} })
}

// Build checks the flow. The error is an *InvalidFlowError with everything that is wrong.
func (b *Builder) Build() (*Flow, error) {
	p := &draft.Project{
		Format: graph.FormatCode,
		Flows:  []*draft.Flow{{Name: b.name, Config: b.config, Opts: b.opts, Nodes: &draft.Set{Nodes: b.nodes}}},
	}
	made, faults := draft.Check(p, draft.Rules{Types: draft.TypesOf(p)})
	if faults = draft.Sorted(append(slices.Clone(b.faults), faults...)); len(faults) > 0 {
		return nil, &InvalidFlowError{Flow: b.name, Faults: faults}
	}
	return &Flow{graph: made.Flows[0]}, nil
}

// Name returns the flow's name.
func (f *Flow) Name() string { return f.graph.Name }

// Nodes returns the paths of the flow's nodes, parents before children.
func (f *Flow) Nodes() []string {
	paths := make([]string, len(f.graph.Nodes))
	for i := range f.graph.Nodes {
		paths[i] = f.graph.Nodes[i].Path
	}
	return paths
}

func (b *Builder) add(n *draft.Node) *Builder {
	b.nodes = append(b.nodes, n)
	return b
}

// last changes the node that was added last.
func (b *Builder) last(method string, change func(*draft.Node)) *Builder {
	if len(b.nodes) == 0 {
		b.fault("", "%s comes before the first node: it says something about the node that was added last", method)
		return b
	}
	change(b.nodes[len(b.nodes)-1])
	return b
}

func (b *Builder) fault(node, format string, args ...any) {
	b.faults = append(b.faults, graph.Fault{Node: node, Reason: fmt.Sprintf(format, args...)})
}
