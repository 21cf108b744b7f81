package decide

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// TestScenarios plays the text scenarios in testdata. Their words:
//
//	flow [format=] [on_failure=] [on_cancelled_end=] [max_parallel=] [disabled=(a,b)]     a flow and a run of it; a line per node:
//	    name [type] [<- parent parent] [each key of parent | each [x y z]] [retry=n] [succeed_on_failure] [if condition]
//	    n{1..3} are three names; a name with a colon is in an embedded flow
//	later                                                  a run that has ended is to go on, and waits for begin
//	begin, pause, resume, kill, retry, retryflow node, rerun nodes, hold node=by, release nodes, due nodes
//	end [outcome]                                          lines: node [outcome] [attempt=n] [try=n] [key=value ...]; [x*3] is a list
//	nostart                                                lines: node reason
//	mark node                                              line: key=value ...
//	play                                                   until nothing runs; lines as of end, for what does not just succeed
//	state, show nodes, why nodes, why (of the run)
//
// What an Apply gave is printed: effects, then the rows that changed. At each step a machine made anew from the rows has to give
// the same effects.
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		s := &scenario{}
		datadriven.RunTest(t, path, s.do)
	})
}

type scenario struct {
	plan *Plan
	m    *Machine
	due  map[int]Retry
}

func (s *scenario) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if d.Cmd == "flow" {
		s.flow(t, d)
		return "ok\n"
	}
	names := func() []int { return s.numbers(t, keys(d.CmdArgs)...) }
	switch d.Cmd {
	case "begin":
		return s.apply(t, Begin{})
	case "later":
		run := s.m.Run()
		run.Status, run.Reason = Queued, ""
		s.m = newMachine(t, s.plan, run, cloneNodes(s.m.nodes))
		return "ok\n"
	case "pause":
		return s.apply(t, Pause{})
	case "resume":
		return s.apply(t, Resume{})
	case "kill":
		return s.apply(t, Kill{})
	case "retry":
		return s.apply(t, RetryFailed{})
	case "retryflow":
		return s.apply(t, RetryFlow{Node: names()[0]})
	case "rerun":
		return s.apply(t, Rerun{Nodes: names()})
	case "mark":
		_, _, outputs := s.ending(t, "x "+d.Input)
		return s.apply(t, MarkSucceeded{Node: names()[0], Outputs: outputs})
	case "hold":
		return s.apply(t, Hold{Node: s.numbers(t, d.CmdArgs[0].Key)[0], By: d.CmdArgs[0].Vals[0]})
	case "release":
		return s.apply(t, each(names(), func(n int) Event { return Release{Node: n} })...)
	case "due":
		return s.apply(t, each(names(), func(n int) Event { return RetryDue(s.due[n]) })...)
	case "timeout":
		return s.apply(t, each(names(), func(n int) Event {
			return TimedOut{Node: n, Try: s.m.Node(n).Try, Attempt: s.m.Node(n).Attempt, Reason: s.m.Path(n) + " took too long"}
		})...)
	case "nostart":
		name, reason, _ := strings.Cut(strings.TrimSpace(d.Input), " ")
		return s.apply(t, CouldNotStart{Node: s.numbers(t, name)[0], Reason: reason})
	case "end":
		var events []Event
		for _, line := range lines(d.Input) {
			for _, n := range s.numbers(t, strings.Fields(line)[0]) {
				events = append(events, s.ended(t, n, line))
			}
		}
		return s.apply(t, events...)
	case "play":
		return s.play(t, d)
	case "state":
		return s.state()
	case "show":
		return s.show(names())
	case "why":
		var out strings.Builder
		if len(d.CmdArgs) == 0 {
			run := s.m.Run()
			fmt.Fprintf(&out, "run: %s\nreason: %s\n", s.m.WhyRun(), run.Reason)
			run.Reason = ""
			if anew := newMachine(t, s.plan, run, cloneNodes(s.m.nodes)); run.Status != Killed && anew.WhyRun() != s.m.WhyRun() {
				t.Errorf("from the rows alone: %s", anew.WhyRun())
			}
		}
		for _, n := range names() {
			fmt.Fprintf(&out, "%s: %s\n", s.m.Path(n), s.m.Why(n))
		}
		return out.String()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
		return ""
	}
}

// flow reads a flow and makes a run of it.
func (s *scenario) flow(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	flow := readFlow(t, d.Input)
	settings := Settings{}
	format := graph.FormatCode
	var disabled []string
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "format":
			format = arg.Vals[0]
		case "on_failure":
			settings.OnFailure = graph.OnFailure(arg.Vals[0])
		case "on_cancelled_end":
			settings.OnCancelledEnd = graph.OnCancelledEnd(arg.Vals[0])
		case "max_parallel":
			settings.MaxParallel = atoi(t, arg.Vals[0])
		case "disabled":
			disabled = arg.Vals
		default:
			t.Fatalf("%s: unknown argument %s", d.Pos, arg.Key)
		}
	}
	var err error
	if s.plan, err = NewPlan(flow); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	nodes, err := s.plan.NewNodes(disabled...)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	run := Run{Status: Preparing, Settings: settings.withDefaults(format), Disabled: map[string]bool{}}
	for _, path := range disabled {
		run.Disabled[path] = true
	}
	s.m = newMachine(t, s.plan, run, nodes)
	s.due = map[int]Retry{}
}

func newMachine(t testing.TB, plan *Plan, run Run, nodes []Node) *Machine {
	t.Helper()
	m, err := plan.Machine(run, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readFlow reads the lines of a flow.
func readFlow(t testing.TB, text string) *graph.Flow {
	t.Helper()
	flow := &graph.Flow{Name: "flow"}
	numbers := map[string]int{}
	parents := map[int][]string{}
	for _, line := range lines(text) {
		line, condition, _ := strings.Cut(line, " if ")
		words := strings.Fields(line)
		for _, path := range expandName(words[0]) {
			node := graph.Node{Path: path, Type: "test", Container: graph.Top, Condition: condition}
			if i := strings.LastIndexByte(path, ':'); i >= 0 {
				container, found := numbers[path[:i]]
				if !found {
					t.Fatalf("%s is in nothing known", path)
				}
				node.Container = container
			}
			numbers[path] = len(flow.Nodes)
			parents[len(flow.Nodes)] = readNode(t, &node, words[1:])
			flow.Nodes = append(flow.Nodes, node)
		}
	}
	for i, names := range parents {
		prefix := ""
		if c := flow.Nodes[i].Container; c != graph.Top {
			prefix = flow.Nodes[c].Path + ":"
		}
		for _, name := range names {
			number, found := numbers[prefix+name]
			if !found {
				t.Fatalf("%s waits for %s, which is not known", flow.Nodes[i].Path, name)
			}
			flow.Nodes[i].Parents = append(flow.Nodes[i].Parents, number)
		}
		slices.Sort(flow.Nodes[i].Parents)
	}
	return flow
}

// readNode reads what stands behind a node's name, and returns its parents' names.
func readNode(t testing.TB, node *graph.Node, words []string) []string {
	t.Helper()
	var parents []string
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "<-":
			for i+1 < len(words) && words[i+1] != "each" && !strings.HasPrefix(words[i+1], "retry=") && words[i+1] != "succeed_on_failure" {
				i++
				parents = append(parents, expandName(words[i])...)
			}
		case word == "each":
			node.ForEach = &graph.ForEach{}
			rest := strings.Join(words[i+1:], " ")
			if list, isList := strings.CutPrefix(rest, "["); isList {
				list, _, _ = strings.Cut(list, "]")
				node.ForEach.Items = strings.Fields(list)
				i += 1 + strings.Count(strings.TrimSpace(list), " ")
				continue
			}
			node.ForEach.Key, node.ForEach.Node = words[i+1], words[i+3]
			i += 3
		case strings.HasPrefix(word, "retry="):
			node.Retry.Max = atoi(t, word[len("retry="):])
		case word == "succeed_on_failure":
			node.SucceedOnFailure = true
		case i == 0:
			node.Type = word
		default:
			t.Fatalf("%s: unknown word %s", node.Path, word)
		}
	}
	return parents
}

// expandName returns the names that n{1..3} stands for.
func expandName(name string) []string {
	before, rest, found := strings.Cut(name, "{")
	if !found {
		return []string{name}
	}
	bounds, after, _ := strings.Cut(rest, "}")
	var from, to int
	if _, err := fmt.Sscanf(bounds, "%d..%d", &from, &to); err != nil {
		panic(name)
	}
	var names []string
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("%s%d%s", before, i, after))
	}
	return names
}

func (s *scenario) numbers(t *testing.T, names ...string) []int {
	t.Helper()
	var numbers []int
	for _, pattern := range names {
		for _, name := range expandName(pattern) {
			n := s.m.Number(name)
			if n == None {
				t.Fatalf("there is no node %s", name)
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// ending reads a line of end or play: how a job ends.
func (s *scenario) ending(t *testing.T, line string) (outcome Outcome, attempt int, outputs map[string]string) {
	t.Helper()
	outcome = JobSucceeded
	for _, word := range strings.Fields(line)[1:] {
		key, value, isPair := strings.Cut(word, "=")
		switch {
		case key == "attempt":
			attempt = atoi(t, value)
		case key == "try":
		case isPair:
			if outputs == nil {
				outputs = map[string]string{}
			}
			if item, times, isList := strings.Cut(strings.Trim(value, "[]"), "*"); isList {
				value = "[" + strings.TrimSuffix(strings.Repeat(item+",", atoi(t, times)), ",") + "]"
			}
			outputs[key] = value
		default:
			outcome = Outcome(word)
		}
	}
	return outcome, attempt, outputs
}

func (s *scenario) ended(t *testing.T, n int, line string) Event {
	t.Helper()
	outcome, attempt, outputs := s.ending(t, line)
	reason := ""
	if outcome == JobFailed {
		reason = "exit status 1"
	}
	try := s.m.Node(n).Try
	if _, after, found := strings.Cut(line, " try="); found {
		try = atoi(t, strings.Fields(after)[0])
	}
	return Ended{Node: n, Try: try, Outcome: outcome, Attempt: attempt, Outputs: outputs, Reason: reason}
}

// play ends every job that is started until there are none. What is to be killed is.
func (s *scenario) play(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	endings := map[string]string{}
	for _, line := range lines(d.Input) {
		for _, name := range expandName(strings.Fields(line)[0]) {
			endings[name] = line
		}
	}
	if s.m.Run().Status == Preparing {
		s.apply(t, Begin{})
	}
	for s.m.RunningJobs() > 0 {
		var events []Event
		for n := range s.m.Len() {
			if !s.m.hasJob(n) {
				continue
			}
			line, found := endings[s.m.Path(n)]
			switch {
			case s.m.Node(n).Status == Killing:
				line = "x killed"
			case !found:
				line = "x succeeded"
			}
			events = append(events, s.ended(t, n, line))
		}
		s.apply(t, events...)
	}
	return s.state()
}

// apply applies events to the machine and to one that is made anew from the rows.
func (s *scenario) apply(t *testing.T, events ...Event) string {
	t.Helper()
	again := newMachine(t, s.plan, s.m.Run(), cloneNodes(s.m.nodes))
	got := s.m.Apply(events...)
	want := again.Apply(events...)
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(s.m.nodes, again.nodes) {
		t.Fatalf("a machine made anew decides otherwise:\n%+v\n%+v", got, want)
	}
	for _, r := range got.Retry {
		s.due[r.Node] = r
	}
	return s.effects(got)
}

func cloneNodes(nodes []Node) []Node {
	clone := slices.Clone(nodes)
	for i := range clone {
		clone[i].Outputs = maps.Clone(clone[i].Outputs)
	}
	return clone
}

func (s *scenario) effects(e Effects) string {
	var out strings.Builder
	for _, list := range []struct {
		name  string
		nodes []int
	}{{"start", e.Start}, {"cancel", e.Cancel}, {"new", e.New}} {
		if len(list.nodes) > 0 {
			fmt.Fprintf(&out, "%s: %s\n", list.name, s.names(list.nodes))
		}
	}
	for _, r := range e.Retry {
		fmt.Fprintf(&out, "retry later: %s, attempt %d\n", s.m.Path(r.Node), r.Attempt)
	}
	if e.FirstFailure != None {
		fmt.Fprintf(&out, "first failure: %s\n", s.m.Path(e.FirstFailure))
	}
	for _, r := range e.Refused {
		fmt.Fprintf(&out, "refused: %s\n", r.Reason)
	}
	out.WriteString(s.byStatus("  ", e.Changed))
	if e.Status != "" {
		fmt.Fprintf(&out, "run: %s\n", e.Status)
	}
	if e.Ended && e.Status == "" {
		fmt.Fprintf(&out, "run: ended %s again\n", s.m.Run().Status)
	}
	if e.Status.Ended() && !e.Ended {
		out.WriteString("the end is not told\n")
	}
	if out.Len() == 0 {
		return "nothing\n"
	}
	return out.String()
}

// names lists nodes, or counts them if they are many.
func (s *scenario) names(nodes []int) string {
	const limit = 20
	if len(nodes) > limit {
		return fmt.Sprintf("%d nodes", len(nodes))
	}
	paths := make([]string, len(nodes))
	for i, n := range nodes {
		paths[i] = s.m.Path(n)
	}
	return strings.Join(paths, " ")
}

// byStatus lists nodes by their status.
func (s *scenario) byStatus(indent string, nodes []int) string {
	byStatus := map[Status][]int{}
	for _, n := range nodes {
		status := s.m.Node(n).Status
		byStatus[status] = append(byStatus[status], n)
	}
	var out strings.Builder
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		fmt.Fprintf(&out, "%s%s: %s\n", indent, status, s.names(byStatus[status]))
	}
	return out.String()
}

func (s *scenario) state() string {
	all := make([]int, s.m.Len())
	for n := range all {
		all[n] = n
	}
	return fmt.Sprintf("run: %s\n", s.m.Run().Status) + s.byStatus("  ", all)
}

func (s *scenario) show(nodes []int) string {
	var out strings.Builder
	for _, n := range nodes {
		node := s.m.Node(n)
		fmt.Fprintf(&out, "%s: %s try=%d attempt=%d", s.m.Path(n), node.Status, node.Try, node.Attempt)
		for _, key := range slices.Sorted(maps.Keys(node.Outputs)) {
			fmt.Fprintf(&out, " %s=%.60s", key, node.Outputs[key])
		}
		if node.Reason != "" {
			fmt.Fprintf(&out, " (%s)", node.Reason)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func lines(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found, line)
		}
	}
	return found
}

func keys(args []datadriven.CmdArg) []string {
	var found []string
	for _, arg := range args {
		found = append(found, arg.Key)
	}
	return found
}

func each(nodes []int, event func(n int) Event) []Event {
	var events []Event
	for _, n := range nodes {
		events = append(events, event(n))
	}
	return events
}

func atoi(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
