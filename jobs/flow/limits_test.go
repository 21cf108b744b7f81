package flow_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// notices are the notices that there are, each as event, node and target, sorted.
func (h *house) notices() string {
	h.t.Helper()
	var text string
	must(h.t, h.pool.QueryRow(h.t.Context(), `SELECT coalesce(string_agg(n, ', ' ORDER BY n), '') FROM (
		SELECT concat_ws(' ', args->>'event', args->>'node', args->>'to') AS n FROM pelton.job WHERE kind = 'flow_notify') x`).Scan(&text))
	return text
}

// misses are the limits of time that are noted as missed, by node.
func (h *house) misses() string {
	h.t.Helper()
	var text string
	must(h.t, h.pool.QueryRow(h.t.Context(), `SELECT coalesce(string_agg(m, ', ' ORDER BY m), '') FROM (
		SELECT concat_ws(' ', project, flow, node, extract(epoch FROM within)::float8) AS m FROM pelton.flow_sla_miss) x`).Scan(&text))
	return text
}

// attempts waits for a node's job to have so many attempts behind it.
func (h *house) attempts(run int64, path string, want int) {
	h.t.Helper()
	pgtest.Eventually(h.t, patience, func() bool {
		var got int
		err := h.pool.QueryRow(h.t.Context(), `SELECT count(*) FROM pelton.job_attempt a JOIN pelton.flow_node n ON n.job_id = a.job_id
			WHERE n.run_id = $1 AND n.path = $2`, run, path).Scan(&got)
		return err == nil && got == want
	}, "%s of run %d to have %d attempts behind it", path, run, want)
}

// moveTimers moves all alerts to another time.
func (h *house) moveTimers(by string) {
	h.t.Helper()
	tag, err := h.pool.Exec(h.t.Context(), `UPDATE pelton.flow_timer SET at = clock_timestamp() + $1::interval`, by)
	if err != nil || tag.RowsAffected() == 0 {
		h.t.Fatalf("move timers: %s, %v", tag, err)
	}
}

// A node that its SLA is to tell of and to kill is killed, and told of, whichever is seen first; and one that kept its time is not told of.
func TestAlertOfANodeThatWasKilled(t *testing.T) {
	t.Parallel()
	const nodes = `
nodes:
  - {name: a, type: test}
  - {name: each, type: test, for_each: [x, y]}
  - {name: b, type: test}
`
	within := func(node string, d time.Duration) flow.SLA {
		return flow.SLA{Node: node, Within: flow.Duration(d), Alert: true, Kill: true}
	}
	options := flow.Options{
		OnFailure: flow.FinishPossible,
		SLAs:      []flow.SLA{within("a", 100*time.Millisecond), within("each[1]", 100*time.Millisecond), within("b", time.Hour), within("each[0]", time.Hour)},
		Notify:    flow.Notify{Failure: []string{"http://127.0.0.1:1/"}},
	}
	const want = "failed http://127.0.0.1:1/, sla_missed a http://127.0.0.1:1/, sla_missed each[1] http://127.0.0.1:1/"
	begin := func(t *testing.T, gates *gate) (*house, int64) {
		t.Helper()
		h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
			switch j.Node.Path {
			case "b":
				return nil, gates.wait(ctx, "b")
			case "each[0]":
				return nil, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		h.push(yaml(t, nodes))
		run := h.start("f", options)
		h.eventually(run, "b", "RUNNING")
		h.flows.Stop()
		h.attempts(run, "a", 1)
		h.attempts(run, "each[1]", 1)
		h.moveTimers("1 h")
		h.flows.Start(t.Context())
		return h, run
	}
	t.Run("the run ends before the alert's time", func(t *testing.T) {
		t.Parallel()
		var gates gate
		gates.open("b")
		h, run := begin(t, &gates)
		equal(t, "run", h.ended(run), "FAILED: a=FAILED b=SUCCEEDED each=FAILED each[0]=SUCCEEDED each[1]=FAILED")
		equal(t, "notices", h.notices(), want)
		equal(t, "misses", h.misses(), "p f a 0.1, p f each[1] 0.1")
	})
	t.Run("the node ends before the alert's time", func(t *testing.T) {
		t.Parallel()
		var gates gate
		h, run := begin(t, &gates)
		h.eventually(run, "a", "FAILED")
		h.eventually(run, "each[1]", "FAILED")
		h.flows.Stop()
		h.moveTimers("0")
		h.flows.Start(t.Context())
		pgtest.Eventually(t, patience, func() bool { return strings.Count(h.notices(), "sla_missed") == 3 }, "the alerts, that of b too, which still runs")
		gates.open("b")
		h.ended(run)
		equal(t, "notices", h.notices(), strings.Replace(want, ", sla_missed each[1]", ", sla_missed b http://127.0.0.1:1/, sla_missed each[1]", 1))
	})
}

// A node that is started over has its time once more, and who is to be told is told of that too; but while it is to succeed the time goes on.
func TestAlertOfANodeThatIsStartedOver(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Try == 0 {
			return nil, flowtest.ErrFailed
		}
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, `
nodes:
  - name: inner
    type: flow
    retry: {max: 1, backoff: 1ms}
    nodes: [{name: a, type: test}]
`))
	run := h.start("f", flow.Options{
		SLAs: []flow.SLA{
			{Node: "inner:a", Within: flow.Duration(time.Hour), Alert: true}, {Node: "inner:a", Within: flow.Duration(2 * time.Hour), Succeed: true, Alert: true},
		},
		Notify: flow.Notify{Failure: []string{"http://127.0.0.1:1/"}},
	})
	pgtest.Eventually(t, patience, func() bool {
		r, err := h.flows.Get(t.Context(), run)
		return err == nil && r.Nodes[1].Try == 1 && r.Nodes[1].Status == "RUNNING"
	}, "the second try to run")
	var first, second, queued time.Time
	must(t, h.pool.QueryRow(t.Context(), `SELECT min(t.at), max(t.at), min(n.queued_at) FROM pelton.flow_timer t
		JOIN pelton.flow_node n ON n.run_id = t.run_id AND n.no = t.node AND n.try = 1`).Scan(&first, &second, &queued))
	if first.Sub(queued) < time.Hour || second.Sub(queued) >= 2*time.Hour {
		t.Errorf("it was queued once more at %v; it is to end until %v, and to succeed until %v", queued, first, second)
	}
	gates.open("go")
	h.ended(run)
	must(t, h.flows.Rerun(t.Context(), run, "inner:a"))
	h.ended(run)
	equal(t, "notices", h.notices(), "")
}

// An embedded flow has no SLA of its own, as it is no job.
func TestSLAOfAnEmbeddedFlow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
nodes:
  - name: inner
    type: flow
    nodes: [{name: a, type: test}]
`))
	_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{SLAs: []flow.SLA{{Node: "inner", Within: 1, Alert: true}}}})
	if err == nil || !strings.Contains(err.Error(), `SLA of "inner", an embedded flow: want one of the run, or of a node that is a job`) {
		t.Errorf("it is accepted: %v", err)
	}
	run := h.start("f", flow.Options{SLAs: []flow.SLA{{Node: "inner:a", Within: flow.Duration(time.Hour), Alert: true}}})
	equal(t, "of a node in it", h.ended(run), "SUCCEEDED: inner=SUCCEEDED inner:a=SUCCEEDED")
}

// A node has the times of its job, whenever a scheduler comes to look.
func TestNodeEndsWhenItsJobDoes(t *testing.T) {
	t.Parallel()
	var gates gate
	h := newHouse(t, func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		return nil, gates.wait(ctx, "go")
	})
	h.push(yaml(t, "nodes: [{name: a, type: test}]\n"))
	run := h.start("f", flow.Options{})
	h.eventually(run, "a", "RUNNING")
	h.flows.Stop()
	gates.open("go")
	h.attempts(run, "a", 1)
	var late time.Time
	must(t, h.pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&late))
	h.flows.Start(t.Context())
	h.ended(run)
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	var started, ended time.Time
	must(t, h.pool.QueryRow(t.Context(), `SELECT started_at, ended_at FROM pelton.job_attempt WHERE job_id = $1`, *r.Nodes[0].JobID).Scan(&started, &ended))
	if n := r.Nodes[0]; !n.StartedAt.Equal(started) || !n.EndedAt.Equal(ended) || !ended.Before(late) || r.EndedAt.Before(late) {
		t.Errorf("the job ran from %v to %v, the node from %v to %v, the run ended at %v", started, ended, n.StartedAt, n.EndedAt, r.EndedAt)
	}
}

// A node that is killed while it waits for its next attempt had started: it is KILLED; one whose first attempt had not begun is CANCELLED.
func TestKillBetweenTwoAttempts(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(context.Context, flowtest.Job) (map[string]string, error) { return nil, flowtest.ErrFailed })
	h.push(yaml(t, `
nodes:
  - {name: a, type: test, retry: {max: 3, backoff: 1h}}
  - {name: never, type: test, queue: nobody}
`))
	run := h.start("f", flow.Options{})
	h.attempts(run, "a", 1)
	must(t, h.flows.Kill(t.Context(), run))
	equal(t, "run", h.ended(run), "KILLED: a=KILLED never=CANCELLED")
	r, err := h.flows.Get(t.Context(), run)
	must(t, err)
	if n := r.Nodes[0]; n.Attempt != 0 || n.EndedAt == nil {
		t.Errorf("a is %+v", n)
	}
}
