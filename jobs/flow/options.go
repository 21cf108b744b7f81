package flow

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// OnFailure says what becomes of a run when a node has failed.
type OnFailure = graph.OnFailure

// What becomes of a run when a node has failed.
const (
	FinishCurrent  = graph.FinishCurrent  // what runs is finished, nothing else starts (the default)
	CancelAll      = graph.CancelAll      // what runs is killed
	FinishPossible = graph.FinishPossible // whatever does not depend on the failed node still runs
)

// OnCancelledEnd is how a run ends when an end node was cancelled by its condition.
type OnCancelledEnd = graph.OnCancelledEnd

// How a run ends when an end node was cancelled by its condition, and nothing failed.
const (
	EndKilled    = graph.EndKilled    // as in Azkaban (the default of projects of Azkaban's formats)
	EndSucceeded = graph.EndSucceeded // the default of flows that were built in code
)

// Duration is a time.Duration that JSON holds as text: "1m30s".
type Duration = graph.Duration

// InvalidOptionsError says everything that is wrong with the options of a run.
type InvalidOptionsError struct{ Err error }

func (e *InvalidOptionsError) Error() string { return e.Err.Error() }
func (e *InvalidOptionsError) Unwrap() error { return e.Err }

// Faults are the single faults, by the names of their fields in JSON.
func (e *InvalidOptionsError) Faults() []OptionError {
	var faults []OptionError
	var add func(err error)
	add = func(err error) {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, one := range many.Unwrap() {
				add(one)
			}
			return
		}
		if fault, ok := errors.AsType[*OptionError](err); ok {
			faults = append(faults, *fault)
			return
		}
		faults = append(faults, OptionError{Reason: err.Error()})
	}
	add(e.Err)
	return faults
}

// OptionError is one thing that is wrong with an option.
type OptionError struct {
	Field  string `json:"field"` // of Options, as JSON names it
	Reason string `json:"reason"`
}

func (e *OptionError) Error() string { return e.Reason }

// Concurrent says what becomes of a new run while others of its flow have not ended.
type Concurrent string

// What becomes of a new run while others of its flow have not ended.
const (
	Allow     Concurrent = "allow"      // it runs beside them (the default)
	Skip      Concurrent = "skip"       // it is refused: ErrRunning
	Queue     Concurrent = "queue"      // it waits until they have ended
	Pipeline1 Concurrent = "pipeline-1" // a node waits for the same node of the run before
	Pipeline2 Concurrent = "pipeline-2" // a node waits for the children of the same node of the run before
	Pipeline3 Concurrent = "pipeline-3" // it waits until the run before has ended
)

// concurrents are all of them.
func concurrents() []Concurrent {
	return []Concurrent{Allow, Skip, Queue, Pipeline1, Pipeline2, Pipeline3}
}

// SLA is a limit of time, counted from the start of the run.
type SLA struct {
	// Node is the path of a node that is a job, or of an instance of a for_each; of a for_each it stands for each instance. The time counts from the making of its job for an alert, and from the start of each
	// attempt for a kill. Empty: the run.
	Node string `json:"node,omitempty"`

	// Within is the time.
	Within Duration `json:"within"`

	// Succeed wants it to succeed in time; else it must only end.
	Succeed bool `json:"succeed,omitempty"`

	// Alert sends a notice to those of Notify.Failure.
	Alert bool `json:"alert,omitempty"`

	// Kill kills the run, or ends the node's attempt, which may then be retried.
	Kill bool `json:"kill,omitempty"`
}

// Notify says whom to tell. A target is an e-mail address, or the URL of a webhook (http or https), which gets a POST of JSON.
type Notify struct {
	Success      []string `json:"success,omitempty"`       // when the run has succeeded
	Failure      []string `json:"failure,omitempty"`       // when it has failed or was killed, and of alerts
	FirstFailure []string `json:"first_failure,omitempty"` // when the first node has failed for good
}

// Options of a run. Zero fields mean what the flow says, and then the defaults.
type Options struct {
	// Params are the run's parameters; they beat the flow's. Names of the engine (azkaban.flow..., azkaban.job...) are refused.
	Params map[string]string `json:"params,omitempty"`

	// NodeParams are parameters of single nodes, by path; they beat everything.
	NodeParams map[string]map[string]string `json:"node_params,omitempty"`

	// Disabled are the paths of nodes that are passed over as SKIPPED; a disabled embedded flow, with all that is in it.
	Disabled []string `json:"disabled,omitempty"`

	// OnFailure is the failure action.
	OnFailure OnFailure `json:"on_failure,omitempty"`

	// OnCancelledEnd is how the run ends when an end node was cancelled by its condition: "killed" or "succeeded".
	OnCancelledEnd OnCancelledEnd `json:"on_cancelled_end,omitempty"`

	// MaxParallel is how many of its jobs may exist at once, 1 to 10,000. Defaults to the flow's, and then to 10.
	MaxParallel int `json:"max_parallel,omitempty"`

	// Concurrent is about other runs of the flow: when this one is started, and when it is to go on after its end.
	Concurrent Concurrent `json:"concurrent,omitempty"`

	// Priority orders the waiting runs of the flow, higher first. Defaults to the flow's, and then to 5.
	Priority int `json:"priority,omitempty"`

	// Queue is where its jobs go that have none of their own. Defaults to "default".
	Queue string `json:"queue,omitempty"`

	// JobPriority is the priority of its jobs that have none of their own, 1 to 4. Defaults to 1.
	JobPriority int `json:"job_priority,omitempty"`

	// SLAs are limits of time.
	SLAs []SLA `json:"slas,omitempty"`

	// Notify says whom to tell, beside those that the flow names.
	Notify Notify `json:"notify,omitzero"`
}

// Limits of Options.
const (
	maxParallel   = 10_000
	maxParamBytes = 1 << 20 // of all parameters together
)

// Check tells everything that is wrong with the options whatever the flow is, an *InvalidOptionsError.
func (o *Options) Check() error {
	if err := joined(o.faults()); err != nil {
		return &InvalidOptionsError{err}
	}
	return nil
}

// validate joins everything that is wrong with the options for this flow.
func (o *Options) validate(g *graph.Flow) error {
	return joined(append(o.faults(), o.nodeFaults(g)...))
}

func joined(faults []error) error {
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// nodeFaults are nodes that the options name and the flow has not.
func (o *Options) nodeFaults(g *graph.Flow) []error {
	var faults []error
	known := make(map[string]int, len(g.Nodes))
	for i := range g.Nodes {
		known[g.Nodes[i].Path] = i
	}
	node := func(field, what, path string) {
		if reason := noNode(g, known, path); reason != "" {
			faults = append(faults, &OptionError{field, what + ": " + reason})
		}
	}
	for path := range o.NodeParams {
		node("node_params", "parameters of a node", path)
	}
	for _, path := range o.Disabled {
		node("disabled", "disabled node", path)
	}
	for _, s := range o.SLAs {
		if s.Node != "" {
			node("slas", "SLA", s.Node)
		}
		if i := g.Find(s.Node); i >= 0 && g.Nodes[i].Type == graph.TypeFlow {
			faults = append(faults, &OptionError{"slas", fmt.Sprintf("SLA of %q, an embedded flow: want one of the run, or of a node that is a job", s.Node)})
		}
	}
	return faults
}

// faults are what is wrong whatever the flow is.
func (o *Options) faults() []error {
	var faults []error
	fault := func(field, format string, args ...any) {
		faults = append(faults, &OptionError{field, fmt.Sprintf(format, args...)})
	}
	size := 0
	check := func(field, where string, params map[string]string) {
		for name, value := range params {
			size += len(name) + len(value)
			switch {
			case name == "":
				fault(field, "%sa parameter has no name", where)
			case strings.HasPrefix(name, "azkaban.flow") || strings.HasPrefix(name, "azkaban.job"):
				fault(field, "%sparameter %q is the engine's own and cannot be set", where, name)
			case strings.HasPrefix(name, param.SecretPrefix):
				fault(field, "%sparameter %q: names that begin with %s are those of secrets", where, name, param.SecretPrefix)
			case len(param.Secrets(value)) > 0:
				fault(field, "%sparameter %q refers to a secret, which only a project's own files may", where, name)
			}
		}
	}
	check("params", "", o.Params)
	for path, params := range o.NodeParams {
		check("node_params", "node "+path+": ", params)
	}
	if size > maxParamBytes {
		fault("params", "parameters are %d bytes together, over the limit of %d", size, maxParamBytes)
	}
	if !slices.Contains([]OnFailure{"", FinishCurrent, CancelAll, FinishPossible}, o.OnFailure) {
		fault("on_failure", "failure action %q: want %s, %s or %s", o.OnFailure, FinishCurrent, CancelAll, FinishPossible)
	}
	if !slices.Contains([]graph.OnCancelledEnd{"", graph.EndKilled, graph.EndSucceeded}, o.OnCancelledEnd) {
		fault("on_cancelled_end", "end after a cancelled end node %q: want %s or %s", o.OnCancelledEnd, graph.EndKilled, graph.EndSucceeded)
	}
	if o.Concurrent != "" && !slices.Contains(concurrents(), o.Concurrent) {
		fault("concurrent", "concurrent %q: want one of %v", o.Concurrent, concurrents())
	}
	if o.MaxParallel < 0 || o.MaxParallel > maxParallel {
		fault("max_parallel", "%d jobs at a time: want 1 to %d", o.MaxParallel, maxParallel)
	}
	if o.Queue != "" {
		if reason := draft.BadQueue(o.Queue); reason != "" {
			fault("queue", "queue %q: %s", o.Queue, reason)
		}
	}
	if o.JobPriority < 0 || o.JobPriority > 4 {
		fault("job_priority", "job priority %d: want 1 to 4", o.JobPriority)
	}
	for _, s := range o.SLAs {
		if s.Within <= 0 || time.Duration(s.Within) > 366*24*time.Hour {
			fault("slas", "SLA within %v: want a time above zero and below a year", time.Duration(s.Within))
		}
		if !s.Alert && !s.Kill {
			fault("slas", "SLA of %q does nothing: want an alert, a kill, or both", s.Node)
		}
	}
	for _, target := range slices.Concat(o.Notify.Success, o.Notify.Failure, o.Notify.FirstFailure) {
		if err := checkTarget(target); err != nil {
			fault("notify", "%v", err)
		}
	}
	return faults
}

// checkTarget tells whether somebody can be told there.
func checkTarget(target string) error {
	if strings.Contains(target, "://") {
		u, err := url.Parse(target)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no webhook: want http://HOST/... or https://HOST/", target)
		}
		return nil
	}
	if _, err := mail.ParseAddress(target); err != nil {
		return fmt.Errorf("%q is neither an e-mail address nor the URL of a webhook", target)
	}
	return nil
}
