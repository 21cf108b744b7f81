package draft

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Keys of a config that the engine itself reads. A job's own config beats that of the embedded flows around it, the nearest
// first, and that beats Flow 1.0's .properties files and the flow's own config.
const (
	keyRetries  = "retries"
	keyBackoff  = "retry.backoff" // milliseconds
	keySucceed  = "job.succeed.on.failure"
	keyAction   = "failure.action"
	keyThreads  = "flow.num.job.threads"
	keyPriority = "flowPriority"
	keySuccess  = "success.emails"
	keyFailure  = "failure.emails"
	keyNotify   = "notify.emails"
)

// actions are the words that Azkaban has for what follows a failure, and those of a run's options.
var actions = map[string]graph.OnFailure{
	"finish_currently_running": graph.FinishCurrent, "finishcurrent": graph.FinishCurrent, "finish_current": graph.FinishCurrent,
	"cancel_all": graph.CancelAll, "cancelimmediately": graph.CancelAll,
	"finish_all_possible": graph.FinishPossible, "finishpossible": graph.FinishPossible, "finish_possible": graph.FinishPossible,
}

// config checks the values of the keys that the engine reads.
func (c *checker) config(config graph.Config, fault faultFunc) {
	c.heap(config, fault)
	secretKeys(config, fault)
	for _, number := range []struct {
		key        string
		least, max int
	}{{keyRetries, 0, maxRetries}, {keyBackoff, 0, 1 << 40}, {keyThreads, 1, 1 << 30}, {keyPriority, -(1 << 30), 1 << 30}} {
		value, ok := config[number.key]
		if !ok || isParameter(value) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case err != nil:
			fault(number.key, "%s: %q is no whole number", number.key, value)
		case n < number.least || n > number.max:
			fault(number.key, "%s is %d, want %d to %d", number.key, n, number.least, number.max)
		}
	}
	value, ok := config[keyAction]
	if _, known := actions[strings.ToLower(strings.TrimSpace(value))]; ok && !known && !isParameter(value) {
		fault(keyAction, "%s: unknown word %q, want finish_current, cancel_all or finish_possible", keyAction, value)
	}
}

// heap checks what a Java process asks for. Azkaban looks at these keys whatever the node's type is.
func (c *checker) heap(config graph.Config, fault faultFunc) {
	for key, reason := range Heaps(config, c.rules.MaxXms, c.rules.MaxXmx) {
		fault(key, "%s", reason)
	}
}

// Heaps tells by key what is wrong with the heaps that a config asks for. What only the run knows is passed over.
func Heaps(config map[string]string, maxXms, maxXmx int64) map[string]string {
	faults := map[string]string{}
	for key, limit := range map[string]int64{"Xms": maxXms, "Xmx": maxXmx} {
		value, ok := config[key]
		if !ok || isParameter(value) {
			continue
		}
		if size, err := ParseMemory(value); err != nil {
			faults[key] = fmt.Sprintf("%s: %v", key, err)
		} else if size > limit {
			faults[key] = fmt.Sprintf("%s is %s, at most %dM are allowed", key, value, limit>>20)
		}
	}
	return faults
}

// look returns the value of a key, and whether there is one that is known before the run.
type look func(key string) (string, bool)

func lookIn(configs ...graph.Config) look {
	return func(key string) (string, bool) {
		for _, config := range configs {
			if value, ok := config[key]; ok {
				return strings.TrimSpace(value), !isParameter(value)
			}
		}
		return "", false
	}
}

func (l look) number(key string) (int, bool) {
	value, ok := l(key)
	n, err := strconv.Atoi(value)
	return n, ok && err == nil
}

func (l look) list(key string) []string {
	value, _ := l(key)
	return SplitList(value)
}

// SplitList splits a list of e-mail addresses.
func SplitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' })
}

// inherit sets what a job takes from its config and those around it. An embedded flow takes nothing: the keys of its config
// are for the jobs in it.
func inherit(n *graph.Node, flow graph.Config, around []graph.Config) {
	if n.Type == graph.TypeFlow {
		return
	}
	configs := append(append([]graph.Config{n.Config}, around...), n.Shared, flow)
	from := lookIn(configs...)
	if !n.Retry.Set {
		n.Retry.Max, n.Retry.Set = from.number(keyRetries)
		if ms, ok := from.number(keyBackoff); ok && n.Retry.Backoff == 0 {
			n.Retry.Backoff = graph.Duration(time.Duration(ms) * time.Millisecond)
		}
	}
	if value, _ := from(keySucceed); strings.EqualFold(value, "true") {
		n.SucceedOnFailure = true
	}
}

// Configure sets the options of a flow that its configs hold, where they are not set yet. The nearest config comes first.
func Configure(o *graph.Options, configs ...graph.Config) {
	from := lookIn(configs...)
	if value, ok := from(keyAction); ok && o.OnFailure == "" {
		o.OnFailure = actions[strings.ToLower(value)]
	}
	if n, ok := from.number(keyThreads); ok && o.MaxParallel == 0 {
		o.MaxParallel = n
	}
	if n, ok := from.number(keyPriority); ok && o.Priority == 0 {
		o.Priority = n
	}
	o.SuccessEmails = append(o.SuccessEmails, from.list(keySuccess)...)
	o.FailureEmails = append(o.FailureEmails, from.list(keyFailure)...)
	o.NotifyEmails = append(o.NotifyEmails, from.list(keyNotify)...)
}

// options checks the words of a flow's options.
func (c *checker) options(f *Flow, fault faultFunc) {
	switch f.Opts.OnFailure {
	case "", graph.FinishCurrent, graph.CancelAll, graph.FinishPossible:
	default:
		fault("on_failure", "on_failure: unknown word %q, want finish_current, cancel_all or finish_possible", f.Opts.OnFailure)
	}
	switch f.Opts.OnCancelledEnd {
	case "", graph.EndKilled, graph.EndSucceeded:
	default:
		fault("on_cancelled_end", "on_cancelled_end: unknown word %q, want killed or succeeded", f.Opts.OnCancelledEnd)
	}
}
