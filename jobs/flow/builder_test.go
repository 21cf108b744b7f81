package flow

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

type plainArgs struct {
	A int    `json:"a"`
	B string `json:"b"`
}

func (plainArgs) Kind() string { return "plain" }

type richArgs struct{ plainArgs }

func (richArgs) Kind() string { return "rich" }

func (richArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: "own", Priority: 3, MaxAttempts: 4}
}

type uniqueArgs struct{ plainArgs }

func (uniqueArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type badArgs struct{ C chan int }

func (badArgs) Kind() string { return "bad" }

type noopArgs struct{}

func (noopArgs) Kind() string { return "noop" }

func TestBuilderMakesTheGraph(t *testing.T) {
	t.Parallel()
	inner := New("inner").Param("x", "1").Noop("first").Job("second", plainArgs{1, "${x}"}).After("first")
	f, err := New("all").Param("retries", "2").OnFailure(CancelAll).MaxParallel(3).
		Command("a", "echo 1", "echo 2").With("env.X", "y").Queue("heavy").Priority(1).Timeout(time.Minute).
		Job("b", richArgs{}).After("a", "a").ForEach().
		Job("c", richArgs{}).After("a").Queue("other").Priority(2).Retry(Retry{Max: 1, Backoff: time.Second, MaxBackoff: time.Minute, Jitter: 0.1}).
		Flow("d", inner).After("b", "c").When("all_done").
		Node("e", "hive", map[string]string{"script": "q.sql"}).After("a").ForEachOf("a", "files").
		Build()
	if err != nil {
		t.Fatal(err)
	}
	second := graph.Retry{Max: 2, Set: true}
	want := &graph.Flow{
		Name: "all", Config: graph.Config{"retries": "2"}, Opts: graph.Options{OnFailure: graph.CancelAll, MaxParallel: 3},
		Nodes: []graph.Node{
			{
				Path: "a", Type: "command", Container: graph.Top, Queue: "heavy", Priority: 1, Timeout: graph.Duration(time.Minute), Retry: second,
				Config: graph.Config{"command": "echo 1", "command.1": "echo 2", "env.X": "y"},
			},
			{
				Path: "b", Type: "rich", Container: graph.Top, Parents: []int{0}, Queue: "own", Priority: 3, Args: json.RawMessage(`{"a":0,"b":""}`),
				Retry: graph.Retry{Max: 3, Set: true}, ForEach: &graph.ForEach{Items: []string{}},
			},
			{
				Path: "c", Type: "rich", Container: graph.Top, Parents: []int{0}, Queue: "other", Priority: 2, Args: json.RawMessage(`{"a":0,"b":""}`),
				Retry: graph.Retry{Max: 1, Set: true, Backoff: graph.Duration(time.Second), MaxBackoff: graph.Duration(time.Minute), Jitter: 0.1},
			},
			{
				Path: "e", Type: "hive", Container: graph.Top, Parents: []int{0}, Retry: second,
				Config: graph.Config{"script": "q.sql"}, ForEach: &graph.ForEach{Node: "a", Key: "files"},
			},
			{Path: "d", Type: "flow", Container: graph.Top, Parents: []int{1, 2}, Condition: "all_done", Config: graph.Config{"x": "1"}},
			{Path: "d:first", Type: "noop", Container: 4, Retry: second},
			{Path: "d:second", Type: "plain", Container: 4, Parents: []int{5}, Retry: second, Args: json.RawMessage(`{"a":1,"b":"${x}"}`)},
		},
	}
	if !reflect.DeepEqual(f.graph, want) {
		t.Errorf("got %s\nwant %s", asJSON(t, f.graph), asJSON(t, want))
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestBuilderTellsAllFaults(t *testing.T) {
	t.Parallel()
	inner := New("inner").After("x").MaxParallel(0).Noop("a").After("missing")
	_, err := New("").Queue("early").
		Job("nil", nil).
		Job("bad", badArgs{}).
		Job("unique", uniqueArgs{}).
		Job("noop", noopArgs{}).
		Noop("a:b").Priority(0).
		Noop("c").Queue("Not a queue").Priority(5).Timeout(-1).Retry(Retry{Max: -1}).
		Noop("d").Retry(Retry{Jitter: 2}).When("nonsense").
		Noop("d").ForEachOf("nil", "x").
		Flow("in", inner).
		Flow("empty", New("")).
		Build()
	invalid, ok := errors.AsType[*InvalidFlowError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, f := range invalid.Faults {
		got = append(got, f.String())
	}
	for _, want := range []string{
		"Queue comes before the first node", `flow name "" is empty`, "nil: has no args", `bad: args of kind "bad": json: unsupported type`,
		"unique: args of kind \"plain\" ask for a unique job", `noop: kind "noop" is the name of a built-in type`,
		`a:b: name "a:b" holds a colon`, "a:b: priority is 0", `c: queue "Not a queue"`, "c: priority is 5", "c: timeout is negative",
		"c: retries are -1", "d: jitter is 2", "d: condition", "d: duplicate name", `d: for_each uses the output of "nil"`,
		"in: After comes before the first node", "in: max_parallel is 0", `in:a: depends on "missing"`, "empty: an embedded flow needs nodes",
	} {
		found := 0
		for _, line := range got {
			if strings.HasPrefix(line, want) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%d faults begin with %q, want 1", found, want)
		}
	}
	if len(got) != 20 || !strings.Contains(err.Error(), strings.Join(got, "\n")) {
		t.Errorf("%d faults:\n%s", len(got), err)
	}
}

// A flow that is embedded keeps what it was, and code that doubles a flow again and again is told, not obeyed.
func TestBuilderEmbedsWhatIsThere(t *testing.T) {
	t.Parallel()
	b := New("b").Noop("a")
	f, err := b.Flow("self", b).Noop("c").After("self").Build()
	if err != nil || strings.Join(f.Nodes(), " ") != "a self self:a c" {
		t.Errorf("got %v: %v", f, err)
	}
	twice := New("twice").Noop("x")
	for range 40 {
		twice = New("twice").Flow("a", twice).Flow("b", twice)
	}
	if _, err := twice.Build(); err == nil || !strings.Contains(err.Error(), "more nodes than can be counted") {
		t.Errorf("got %v", err)
	}
}
