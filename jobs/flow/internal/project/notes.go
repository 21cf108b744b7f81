package project

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/cond"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/line"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// notes reports what a project says that will behave otherwise than its author may think.
func notes(d *draft.Project, report *draft.Report) {
	neverSet(d, report)
	for _, s := range d.Shared {
		config(s.Config, about{report: report, at: draft.Place{File: s.File}, lines: s.Lines})
	}
	if d.Jobs != nil {
		ends := make(map[string]bool, len(d.Flows))
		for _, f := range d.Flows {
			ends[f.End] = true
		}
		set(d.Jobs, "", nil, report)
		directories(d.Jobs, report)
		for _, n := range d.Jobs.Nodes {
			if !ends[n.Name] {
				ofFlows(n, n.Name, report, "in the last job of a flow, or in .properties")
			}
		}
	}
	for _, f := range d.Flows {
		a := about{report: report, at: draft.Place{File: f.File}, lines: f.Lines}
		config(f.Config, a)
		trigger(f.Trigger, a)
		if f.Nodes != nil {
			set(f.Nodes, "", []graph.Config{f.Config}, report)
			each(f.Nodes, "", func(n *draft.Node, path string) { ofFlows(n, path, report, "in the config of the whole flow") })
		}
	}
}

// about is what notes are taken of.
type about struct {
	report *draft.Report
	at     draft.Place
	lines  draft.Lines
}

func (a about) note(key, format string, args ...any) {
	at := a.at
	if line := a.lines[key]; line > 0 {
		at.Line = line
	}
	a.report.Note(at, format, args...)
}

func set(s *draft.Set, prefix string, around []graph.Config, report *draft.Report) {
	for _, n := range s.Nodes {
		a := about{report: report, at: draft.Place{File: n.File, Line: n.Line, Node: prefix + n.Name}, lines: n.Lines}
		config(n.Config, a)
		has := func(key string) bool {
			for _, c := range append([]graph.Config{n.Config, n.Shared}, around...) {
				if _, ok := c[key]; ok {
					return true
				}
			}
			return false
		}
		if _, own := n.Config["retry.backoff"]; own && n.Type != graph.TypeFlow && !n.Retry.Set && !has("retries") {
			a.note("retry.backoff", "retry.backoff without retries: the job is not tried again")
		}
		if e, err := cond.Parse(n.Condition); err == nil && !e.Required() {
			a.note("condition", "condition: its macro is not joined by && alone; Azkaban would want it to hold whatever the rest says")
		}
		if n.Type == graph.TypeCommand {
			commands(n.Config, a)
		}
		shownSecrets(n, around, a)
		if n.Type == graph.TypeNoop && n.Config["command"] != "" {
			a.note("command", "the command of a noop is not run")
		}
		if n.Type == graph.TypeNoop {
			for key, is := range map[string]bool{"timeout": n.Timeout != 0, "queue": n.Queue != "", "priority": n.Priority != 0} {
				if is {
					a.note(key, "the %s of a noop is not used: it is no job", key)
				}
			}
		}
		if n.Nodes != nil {
			set(n.Nodes, prefix+n.Name+":", append([]graph.Config{n.Config}, around...), report)
		}
	}
}

// directories notes the jobs of Flow 1.0 that Azkaban runs in the directories of their files, once for each directory.
func directories(jobs *draft.Set, report *draft.Report) {
	first, count := map[string]draft.Place{}, map[string]int{}
	for _, n := range jobs.Nodes {
		dir := path.Dir(n.File)
		_, own := n.Config["working.dir"]
		_, shared := n.Shared["working.dir"]
		if dir == "." || own || shared || n.Type != graph.TypeCommand && n.Type != graph.TypeJavaProcess {
			continue
		}
		if count[dir]++; count[dir] == 1 {
			first[dir] = draft.Place{File: n.File, Node: n.Name}
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(first)) {
		who := "it runs"
		if more := count[dir] - 1; more > 0 {
			who = fmt.Sprintf("it and %d more of %s run", more, dir)
		}
		report.Note(first[dir], "%s in the project's directory, where Azkaban runs a job in that of its file: working.dir=%s does so here", who, dir)
	}
}

// each visits the nodes of a set and those within them.
func each(s *draft.Set, prefix string, visit func(n *draft.Node, path string)) {
	for _, n := range s.Nodes {
		visit(n, prefix+n.Name)
		if n.Nodes != nil {
			each(n.Nodes, prefix+n.Name+":", visit)
		}
	}
}

// flowKeys are those that say something about a whole flow.
var flowKeys = []string{"failure.action", "failure.emails", "flow.num.job.threads", "flowPriority", "notify.emails", "success.emails"}

// ofFlows notes keys of a node that only count elsewhere.
func ofFlows(n *draft.Node, path string, report *draft.Report, where string) {
	for _, key := range flowKeys {
		if _, ok := n.Config[key]; ok {
			a := about{report: report, at: draft.Place{File: n.File, Line: n.Line, Node: path}, lines: n.Lines}
			a.note(key, "%s is not used here: it counts %s", key, where)
		}
	}
}

func trigger(t *graph.Trigger, a about) {
	if t == nil {
		return
	}
	if t.Schedule != "" {
		a.note("trigger", "the schedule %q starts nothing by itself: flow push --with-schedule makes a schedule of it, in the time zone of --tz", t.Schedule)
	}
	if len(t.DependsOn) > 0 {
		a.note("trigger", "triggerDependencies (%s) are not supported: the flow does not wait for them", strings.Join(t.DependsOn, ", "))
	}
}

// notUsed are Azkaban's keys that mean nothing here.
var notUsed = map[string]string{
	"useExecutor":                 "any executor that serves the queue may run the flow; use queue to choose",
	"user.to.proxy":               "programs run as the executor's user",
	"azkaban.should.proxy.user":   "programs run as the executor's user",
	"execute.as.user":             "programs run as the executor's user",
	"azkaban.group.name":          "programs run as the executor's user",
	"memory.check.enabled":        "the executor's memory is not looked at",
	"job.max.Xms":                 "the limit is the installation's, --flow-max-xms",
	"job.max.Xmx":                 "the limit is the installation's, --flow-max-xmx",
	"azkaban.job.attachment.file": "attachments are not shown; write outputs to JOB_OUTPUT_PROP_FILE",
}

var (
	parameter = regexp.MustCompile(`\$\{[^{}]*\}`)
	plainName = regexp.MustCompile(`^\$\{[a-zA-Z_.0-9]+\}$`)
)

// attempt is the one run-time property that a job's retries change.
const attempt = "${azkaban.job.attempt}"

// numbers are the keys that the engine reads before a run exists.
var numbers = []string{"retries", "retry.backoff", "flow.num.job.threads", "flowPriority", "failure.action"}

// config looks at the keys of one config.
func config(c graph.Config, a about) {
	for _, key := range slices.Sorted(maps.Keys(c)) {
		value := c[key]
		if why, ok := notUsed[key]; ok {
			a.note(key, "%s is not used: %s", key, why)
			continue
		}
		if param.IsRuntime(key) {
			a.note(key, "%s is set by the run: what the config says is not used", key)
		}
		for _, p := range slices.Compact(parameter.FindAllString(value, 100)) {
			if !plainName.MatchString(p) {
				a.note(key, "%s: %s is left as it is: names of parameters have letters, digits, _ and . only", key, p)
			}
		}
		if strings.Contains(value, attempt) {
			a.note(key, "%s: %s is 0 in every attempt: a retry has the texts of the first; read azkaban.job.attempt from JOB_PROP_FILE", key, attempt)
		}
		if slices.Contains(numbers, key) && strings.Contains(value, "${") {
			a.note(key, "%s is not used: a parameter (%s) has no value yet when it is read", key, value)
		}
	}
}

// neverSet notes references to properties that Azkaban sets and nobody does here.
func neverSet(d *draft.Project, report *draft.Report) {
	type written struct {
		config graph.Config
		about  about
	}
	var all []written
	own := map[string]bool{} // what the project itself gives a value
	add := func(c graph.Config, at draft.Place, lines draft.Lines) {
		all = append(all, written{c, about{report: report, at: at, lines: lines}})
		for key := range c {
			own[key] = true
		}
	}
	nodes := func(n *draft.Node, path string) {
		add(n.Config, draft.Place{File: n.File, Line: n.Line, Node: path}, n.Lines)
	}
	for _, s := range d.Shared {
		add(s.Config, draft.Place{File: s.File}, s.Lines)
	}
	if d.Jobs != nil {
		each(d.Jobs, "", nodes)
	}
	for _, f := range d.Flows {
		add(f.Config, draft.Place{File: f.File}, f.Lines)
		if f.Nodes != nil {
			each(f.Nodes, "", nodes)
		}
	}
	for _, w := range all {
		for _, key := range slices.Sorted(maps.Keys(w.config)) {
			for _, reference := range slices.Compact(parameter.FindAllString(w.config[key], 100)) {
				name := reference[2 : len(reference)-1]
				switch {
				case !strings.HasPrefix(name, "azkaban.") || !plainName.MatchString(reference) || param.IsRuntime(name) || own[name]:
				case param.Reserved(name):
					w.about.note(key, "%s: %s is not set here, and a run refuses it as a parameter: what uses it fails", key, reference)
				default:
					w.about.note(key, "%s: %s is not set here: what uses it fails, unless a parameter of the run or the installation gives it a value", key, reference)
				}
			}
		}
	}
}

// commands looks at the command lines of a node.
func commands(c graph.Config, a about) {
	highest := 0
	for key, value := range c {
		n, isCommand := commandNumber(key)
		if !isCommand {
			continue
		}
		highest = max(highest, n)
		for _, what := range surprises(value) {
			a.note(key, "%s: %s", key, what)
		}
	}
	for n := 1; n < highest; n++ {
		if _, ok := c[fmt.Sprintf("command.%d", n)]; !ok {
			a.note(fmt.Sprintf("command.%d", highest), "command.%d and what follows it is not run: command.%d is missing", n+1, n)
			return
		}
	}
}

// shownSecrets notes secrets on command lines, where other users of the host can see them.
func shownSecrets(n *draft.Node, around []graph.Config, a about) {
	var texts map[string]string
	for key, value := range n.Config {
		_, isCommand := commandNumber(key)
		runs := isCommand && n.Type == graph.TypeCommand || (key == "main.args" || key == "jvm.args") && n.Type == graph.TypeJavaProcess
		if !runs || !strings.Contains(value, "${") {
			continue
		}
		if texts == nil {
			texts = draft.Texts(n, around)
		}
		argv := line.Split(value)
		for at, word := range argv {
			secret := param.LeadsToSecret(texts, word)
			if secret == "" || isCommand && line.IsScript(argv, at) {
				continue
			}
			a.note(key, "%s: secret.%s stands on a command line, which other users of the executor's host can see: give it by env.NAME, or in the script of a shell", key, secret)
			break
		}
	}
}

func commandNumber(key string) (n int, ok bool) {
	if key == "command" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(key, "command.")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && strconv.Itoa(n) == digits
}

// hidden notes files that were left out because their names begin with a dot.
func hidden(b *bundle.Bundle, report *draft.Report) {
	const most = 5
	if len(b.Hidden) == 0 {
		return
	}
	names := strings.Join(b.Hidden[:min(most, len(b.Hidden))], ", ")
	if len(b.Hidden) > most {
		names += fmt.Sprintf(" and %d more", len(b.Hidden)-most)
	}
	report.Note(draft.Place{}, "names that begin with a dot are left out: %s", names)
}
