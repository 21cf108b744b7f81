package flow_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// How a run ends after a cancelled end node is what its options say, or else what the flow says, or else as in Azkaban.
func TestCancelledEndOfARun(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	const nodes = `
nodes:
  - {name: a, type: noop}
  - {name: b, type: noop, dependsOn: [a], condition: all_failed}
`
	for own, says := range map[string]string{"": "KILLED", "killed": "KILLED", "succeeded": "SUCCEEDED"} {
		text := nodes
		if own != "" {
			text = "on_cancelled_end: " + own + nodes
		}
		h.push(yaml(t, text))
		for option, want := range map[flow.OnCancelledEnd]string{"": says, "killed": "KILLED", "succeeded": "SUCCEEDED"} {
			run := h.start("f", flow.Options{OnCancelledEnd: option})
			equal(t, fmt.Sprintf("the flow says %q, the run %q", own, option), h.ended(run), want+": a=SUCCEEDED b=CANCELLED")
		}
	}
}

// How many jobs of a run there are at once is what its options say, or else what the flow says. They are made together, so that when
// one runs all are there.
func TestJobsOfARunAtOnce(t *testing.T) {
	t.Parallel()
	for option, want := range map[int]int{0: 2, 1: 1, 3: 3} {
		t.Run(strconv.Itoa(option), func(t *testing.T) {
			t.Parallel()
			var gates gate
			h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
				return nil, gates.wait(ctx, "go")
			})
			h.push(yaml(t, `
max_parallel: 2
nodes:
  - {name: a, type: test}
  - {name: b, type: test}
  - {name: c, type: test}
  - {name: d, type: test}
`))
			run := h.start("f", flow.Options{MaxParallel: option})
			h.eventually(run, "a", "RUNNING")
			var got int
			must(t, h.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.job WHERE kind = 'test'`).Scan(&got))
			if got != want {
				t.Errorf("%d jobs at once, want %d", got, want)
			}
			gates.open("go")
			equal(t, "run", h.ended(run), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED d=SUCCEEDED")
		})
	}
}

// Queue and priority of a node's job are the node's own, or else the run's, or else the defaults.
func TestQueueAndPriorityOfJobs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - {name: own, type: test, priority: 2, queue: side}
  - {name: other, type: test}
`))
	for _, c := range []struct {
		options flow.Options
		want    string
	}{
		{flow.Options{}, "other 1 default, own 2 side"},
		{flow.Options{JobPriority: 4, Queue: "main"}, "other 4 main, own 2 side"},
	} {
		run := h.start("f", c.options)
		h.eventually(run, "own", "QUEUED")
		var got string
		must(t, h.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', n.path, j.priority, j.queue), ', ' ORDER BY n.path)
			FROM pelton.flow_node n JOIN pelton.job j ON j.id = n.job_id WHERE n.run_id = $1`, run).Scan(&got))
		equal(t, fmt.Sprintf("%+v", c.options), got, c.want)
	}
}

// A node's timeout ends its attempt, and so does an SLA that is shorter; the next attempt has as long again.
func TestTimeoutOfANode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Attempt > 0 {
			return nil, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	})
	h.push(yaml(t, `
nodes:
  - {name: once, type: test, timeout: 100ms}
  - {name: again, type: test, timeout: 100ms, retry: {max: 1}}
  - {name: limited, type: test, timeout: 1h}
`))
	run := h.start("f", flow.Options{
		OnFailure: flow.FinishPossible,
		SLAs:      []flow.SLA{{Node: "limited", Within: flow.Duration(100 * time.Millisecond), Kill: true}},
	})
	equal(t, "run", h.ended(run), "FAILED: again=SUCCEEDED limited=FAILED once=FAILED")
}

// Names that the engine sets are refused as parameters of a run and of a node, and those that only look alike are not.
func TestNamesOfTheEngineAreRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, "nodes: [{name: a, type: noop}]\n"))
	for name, refused := range map[string]bool{
		"azkaban.flow.x": true, "azkaban.flow.execid": true, "azkaban.job.id": true, "azkaban.job": true, "azkaban.other": false, "my.azkaban.flow.x": false,
	} {
		params := map[string]string{name: "1"}
		start := func(o flow.Options) error {
			_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: o})
			return err
		}
		_, err := flow.NewClient(h.pool, h.jobs, &flow.Config{Params: params})
		for _, c := range []struct {
			of  string
			err error
		}{
			{"run flow p/f: parameter", start(flow.Options{Params: params})},
			{"run flow p/f: node a: parameter", start(flow.Options{NodeParams: map[string]map[string]string{"a": params}})},
			{"new flow client: parameter", err},
		} {
			want := fmt.Sprintf("%s %q is the engine's own and cannot be set", c.of, name)
			if refused != (c.err != nil) || refused && c.err.Error() != want {
				t.Errorf("%s: %v", name, c.err)
			}
		}
	}
}
