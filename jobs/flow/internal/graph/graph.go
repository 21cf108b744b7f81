package graph

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Types of nodes that the flow engine knows by itself. Any other type is a job kind, or mapped to a command by configuration.
const (
	TypeCommand     = "command"
	TypeJavaProcess = "javaprocess"
	TypeNoop        = "noop"
	TypeFlow        = "flow"
)

// Formats of a project.
const (
	FormatFlow1 = "flow-1.0" // .job and .properties files
	FormatFlow2 = "flow-2.0" // .project and .flow files
	FormatCode  = "code"     // made by the builder
)

// Limits of a project.
const (
	MaxNodes = 100_000 // of a flow, embedded ones counted each time
	MaxTotal = 500_000 // of all flows of a project
	MaxDepth = 50      // of embedded flows
	MaxName  = 255     // bytes of a node's or a flow's name
	MaxPath  = 1000    // bytes of a node's path
)

// Project is what one upload holds.
type Project struct {
	Format string  `json:"format"`
	Flows  []*Flow `json:"flows"` // by name
}

// Flow is one flow of a project.
type Flow struct {
	Name   string  `json:"name"`
	File   string  `json:"file,omitempty"` // where it is defined, relative to the project
	Nodes  []Node  `json:"nodes"`
	Config Config  `json:"config,omitempty"` // of the whole flow: Flow 2.0's top-level config
	Opts   Options `json:"options,omitzero"`

	Trigger *Trigger `json:"trigger,omitempty"`
}

// Top is the container of nodes that are in none.
const Top = -1

// Node is one node.
type Node struct {
	Path      string `json:"path"`              // "outer:inner"
	Type      string `json:"type"`              // one of the types above, a job kind, or a mapped type
	Container int    `json:"container"`         // the embedded flow it is in; Top: none
	Parents   []int  `json:"parents,omitempty"` // in the same container, sorted
	Config    Config `json:"config,omitempty"`  // its own, as written: parameters are not resolved
	Shared    Config `json:"shared,omitempty"`  // Flow 1.0: what its .properties files say, the nearest last

	// Template is the command that the node's type stood for when the version was pushed; "": its type is not mapped.
	Template string `json:"template,omitempty"`

	// Args are the args of a node that code made from a job kind. Texts in it may hold parameters. Of other nodes of a job
	// kind, the args are made of the parameters.
	Args json.RawMessage `json:"args,omitempty"`

	Condition        string   `json:"condition,omitempty"` // as written; "": all_success
	ForEach          *ForEach `json:"for_each,omitempty"`
	Retry            Retry    `json:"retry,omitzero"`
	Queue            string   `json:"queue,omitempty"`    // "": the run's
	Priority         int      `json:"priority,omitempty"` // 1 to 4; 0: the run's
	Timeout          Duration `json:"timeout,omitzero"`   // of one attempt; 0: none
	SucceedOnFailure bool     `json:"succeed_on_failure,omitempty"`

	File string `json:"file,omitempty"` // where it is defined, for people
	Line int    `json:"line,omitempty"`
}

// Config maps keys to texts, in which parameters are not resolved yet.
type Config map[string]string

// Retry says how often a node is tried again after a failure, and when. Of an embedded flow: the whole of it.
type Retry struct {
	Max        int      `json:"max,omitempty"` // tries after the first
	Set        bool     `json:"set,omitempty"` // Max was written, so that 0 beats a default
	Backoff    Duration `json:"backoff,omitzero"`
	MaxBackoff Duration `json:"max_backoff,omitzero"` // above Backoff: doubled each time up to this; 0: fixed
	Jitter     float64  `json:"jitter,omitempty"`     // 0 to 1: each wait is shortened at random by up to this part
}

// ForEach makes an instance of its node for each item when its parents have ended. Instances have paths "node[0]", "node[1]", ...
// and the parameters item and item.index. The node ends when they all have.
type ForEach struct {
	Items []string `json:"items,omitempty"` // written down, or
	Node  string   `json:"node,omitempty"`  // the output of this parent (its name in the same container),
	Key   string   `json:"key,omitempty"`   // under this key: a JSON array
}

// Options of a flow, each a default that a run may override.
type Options struct {
	OnFailure      OnFailure      `json:"on_failure,omitempty"`       // "": finish_current
	OnCancelledEnd OnCancelledEnd `json:"on_cancelled_end,omitempty"` // "": killed in a project of Azkaban's (formats flow-1.0, flow-2.0)
	MaxParallel    int            `json:"max_parallel,omitempty"`     // jobs of one run at a time; 0: 10
	Priority       int            `json:"flow_priority,omitempty"`    // higher first among waiting runs; 0: 5
	SuccessEmails  []string       `json:"success_emails,omitempty"`
	FailureEmails  []string       `json:"failure_emails,omitempty"`
	NotifyEmails   []string       `json:"notify_emails,omitempty"`
}

// OnFailure says what becomes of a run when a node has failed.
type OnFailure string

// What becomes of a run when a node has failed.
const (
	FinishCurrent  OnFailure = "finish_current"  // what runs is finished, nothing else starts
	CancelAll      OnFailure = "cancel_all"      // what runs is killed
	FinishPossible OnFailure = "finish_possible" // whatever does not depend on the failed node still runs
)

// OnCancelledEnd is how a run ends when an end node was cancelled by its condition.
type OnCancelledEnd string

// How a run ends when an end node was cancelled by its condition.
const (
	EndKilled    OnCancelledEnd = "killed"    // as in Azkaban
	EndSucceeded OnCancelledEnd = "succeeded" // if nothing else failed
)

// Trigger is Flow 2.0's trigger, as written.
type Trigger struct {
	Schedule  string   `json:"schedule,omitempty"` // a Quartz cron expression
	MaxWait   Duration `json:"max_wait,omitzero"`
	DependsOn []string `json:"depends_on,omitempty"` // names of triggerDependencies; not supported, reported
}

// Duration is a time.Duration that JSON holds as text: "1m30s".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Fault is one thing that is wrong with an upload. All faults of an upload are reported together.
type Fault struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"` // 0: unknown
	Node   string `json:"node,omitempty"` // its path
	Reason string `json:"reason"`
}

// String shows a fault to a person: "file:line: node: reason".
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		b.WriteString(":" + strconv.Itoa(f.Line))
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if f.Node != "" {
		node := f.Node
		if strings.ContainsFunc(node, unicode.IsControl) {
			node = strconv.Quote(node)
		}
		b.WriteString(node + ": ")
	}
	return b.String() + f.Reason
}

// Note is something that will behave otherwise than an author may think; it does not stop an upload. It has the shape of a fault.
type Note = Fault
