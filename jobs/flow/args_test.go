package flow_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// seen keeps the args that test jobs had, by the paths of their nodes.
type seen struct {
	mu   sync.Mutex
	args map[string]flowtest.Args
}

// outputs has jobs note their args and put out what is said of their nodes.
func (s *seen) outputs(of map[string]map[string]string) decideFunc {
	return func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.args == nil {
			s.args = map[string]flowtest.Args{}
		}
		s.args[j.Node.Path] = j.Args
		return of[j.Node.Path], nil
	}
}

// check checks a table: a parameter, and what it is for each node. "-": it is absent, "": not asked.
func (s *seen) check(t *testing.T, nodes []string, rows [][]string) {
	t.Helper()
	for _, row := range rows {
		for i, path := range nodes {
			got, found := s.args[path][row[0]]
			if want := row[i+1]; want != "" && got != want && (found || want != "-") {
				t.Errorf("%s of %s is %q (%v), want %q", row[0], path, got, found, want)
			}
		}
	}
}

// What jobs of each node of Azkaban's own example are given.
func TestCase16Precedence(t *testing.T) {
	t.Parallel()
	var jobs seen
	h := newHouse(t, jobs.outputs(map[string]map[string]string{
		"job2":           {"props6": "g2job6", "props4": "g2job4", "props5": "g2job5", "props7": "g2job7", "props10": "g2job10"},
		"innerflow:job1": {"props4": "g1job4", "props10": "g1job10"},
		"innerflow:job4": {"props9": "g4job9", "props6": "g4job6"},
	}))
	h.push(cases(t, "16-v1-param-precedence"))
	run := h.start("job3", flow.Options{
		Params: map[string]string{
			"props7": "execflow7", "props6": "execflow6", "props5": "execflow5", "runtime1": "runtime1-ROOT", "runtime2": "runtime2-ROOT",
		},
		NodeParams: map[string]map[string]string{
			"job2":           {"job-prop-2": "job2-val-2", "props6": "job2-val-6"},
			"innerflow":      {"props6": "innerflow-val-6", "props4": "innerflow-val-4", "props10": "innerflow-val-10"},
			"innerflow:job4": {"runtime1": "runtime1-job4", "props4": "innerflow-job4-val-4", "props5": "innerflow-job4-val-5"},
			"job3":           {"prop-job3": "should-be-set-only-for-job3"},
		},
	})
	equal(t, "run", h.ended(run), "SUCCEEDED: innerflow=SUCCEEDED innerflow:job1=SUCCEEDED innerflow:job4=SUCCEEDED job2=SUCCEEDED job3=SUCCEEDED")
	jobs.check(t, []string{"job2", "innerflow:job1", "innerflow:job4", "job3"}, [][]string{
		{"props1", "shared1", "job1", "shared1", "shared1"},
		{"props2", "job2", "job2", "shared2", "shared2"},
		{"props3", "moo3", "moo3", "moo3", "job3"},
		{"props4", "shared4", "innerflow-val-4", "innerflow-job4-val-4", "moo4"},
		{"props5", "execflow5", "innerflow5", "innerflow-job4-val-5", "execflow5"},
		{"props6", "job2-val-6", "innerflow-val-6", "innerflow-val-6", "g4job6"},
		{"props7", "job7", "g2job7", "g2job7", "execflow7"},
		{"props8", "shared8", "job8", "job8", ""},
		{"props9", "", "", "job9", "g4job9"},
		{"props10", "-", "innerflow-val-10", "g1job10", "-"},
		{"runtime1", "runtime1-ROOT", "runtime1-ROOT", "runtime1-job4", "runtime1-ROOT"},
		{"runtime2", "runtime2-ROOT", "runtime2-ROOT", "runtime2-ROOT", "runtime2-ROOT"},
		{"job-prop-2", "job2-val-2", "", "", ""},
		{"prop-job3", "-", "", "-", "should-be-set-only-for-job3"},
	})
}

// A job kind of a project's files is given all of its node's parameters, wherever they come from; of the engine's own, what it refers to.
func TestArgsOfKinds(t *testing.T) {
	t.Parallel()
	var jobs seen
	h := newHouse(t, jobs.outputs(map[string]map[string]string{"a": {"out": "of a"}, "in:x": {"deep": "of x"}}))
	h.push(write(t, map[string]string{
		"all.properties":     "shared=from files\nfail.late=${shared}\n",
		"a.job":              "type=test\nown=${azkaban.job.id} ${shared}\n",
		"in.job":             "type=flow\nflow.name=x\ndependencies=a\nembedded=yes\n",
		"last.job":           "type=test\ndependencies=in\n",
		"sub/sub.properties": "shared=from below\n",
		"sub/x.job":          "type=test\n",
	}))
	run := h.start("last", flow.Options{
		Params:     map[string]string{"of.run": "run"},
		NodeParams: map[string]map[string]string{"in:x": {"of.node": "node"}, "last": {"fail": "true"}},
	})
	equal(t, "run", h.ended(run), "FAILED: a=SUCCEEDED in=SUCCEEDED in:x=SUCCEEDED last=FAILED")
	jobs.check(t, []string{"a", "in:x"}, [][]string{
		{"shared", "from files", "from below"},
		{"fail.late", "from files", "from below"},
		{"own", "a from files", "-"},
		{"embedded", "-", "yes"},
		{"of.run", "run", "run"},
		{"of.node", "-", "node"},
		{"out", "-", "of a"},
		{"azkaban.job.id", "-", "-"},
		{"azkaban.flow.execid", "-", "-"},
	})
}

// Args that code gave are as it gave them, with the parameters that the run sets for the node.
func TestArgsOfCode(t *testing.T) {
	t.Parallel()
	h := &house{t: t, pool: schematest.Pool(t)}
	var jobs seen
	h.jobs, h.flows = h.client(jobs.outputs(nil))
	f, err := flow.New("f").Param("of.flow", "flow").
		Job("a", looseArgs{Text: "${of.flow} ${more}", Numbers: []int{1}}).
		Job("b", looseArgs{Text: "plain"}).
		Node("c", "loose", map[string]string{"own": "${of.flow}"}).
		Node("d", flowtest.Kind, nil).
		Build()
	must(t, err)
	// The type of a node that Node added must be known, or be mapped; the kind of one that Job added need not.
	report, err := h.flows.PushFlows(t.Context(), "p", f)
	if faults := (&flow.FaultsError{}); !errors.As(err, &faults) || len(faults.Faults) != 1 || report.Version != nil ||
		!strings.HasPrefix(faults.Faults[0].String(), `f: c: unknown type "loose": it is neither built in`) {
		t.Errorf("an unknown type: %v", err)
	}
	h.executes("loose")
	_, err = h.flows.PushFlows(t.Context(), "p", f)
	must(t, err)
	own := map[string]string{"more": "m ${of.flow}", "text": "is given"}
	run := h.start("f", flow.Options{NodeParams: map[string]map[string]string{"a": own, "c": own}})
	h.eventually(run, "d", "SUCCEEDED")
	jobs.check(t, []string{"d"}, [][]string{{"of.flow", "flow"}, {"more", "-"}})
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	want := map[string]string{
		"a": `{"more":"m flow","numbers":[1],"text":"flow m flow"}`,
		"b": `{"text":"plain","numbers":null}`,
		"c": `{"more":"m flow","own":"flow","text":"is given"}`,
	}
	got := map[string]string{}
	for _, n := range r.Nodes {
		if n.Path != "d" {
			var args json.RawMessage
			must(t, h.pool.QueryRow(t.Context(), `SELECT args FROM pelton.job WHERE id = $1`, n.JobID).Scan(&args))
			got[n.Path] = strings.ReplaceAll(string(args), ": ", ":")
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("args\n got %v\nwant %v", got, want)
	}
	must(t, h.flows.Kill(t.Context(), run)) // nobody works that kind
	h.ended(run)
}

// executes has an executor be known that works a kind.
func (h *house) executes(kind string) {
	h.t.Helper()
	_, err := h.pool.Exec(h.t.Context(), `UPDATE pelton.executor SET kinds = kinds || $1::text`, kind)
	must(h.t, err)
}

// A flow of code may have nodes of mapped types, which run their commands.
func TestMappedTypesOfCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	f, err := flow.New("f").Node("a", "say", map[string]string{"what": "${x}"}).Build()
	must(t, err)
	for _, words := range []string{"said", "told"} { // one flow may be pushed under several mappings
		flows, err := flow.NewClient(h.pool, h.jobs, &flow.Config{SchedulerOff: true, Types: map[string]string{"say": "echo " + words + " ${what}"}})
		must(t, err)
		_, err = flows.PushFlows(t.Context(), "p", f)
		must(t, err)
		run := h.start("f", flow.Options{Params: map[string]string{"x": "this"}})
		equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED")
		equal(t, "log", h.log(run, "a"), words+" this\n")
	}
}

// looseArgs are args of a kind that nobody works.
type looseArgs struct {
	Text    string `json:"text"`
	Numbers []int  `json:"numbers"`
}

func (looseArgs) Kind() string { return "loose" }
