package flow_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestQueryModes has flows pushed, run and operated in each way of asking that poolers call for.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var gates gate
			began := make(chan struct{}, 10)
			h := &house{t: t, pool: schematest.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })}
			h.jobs, h.flows = h.client(func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
				switch {
				case j.Node.Path == "b" && j.Node.Try == 0:
					return nil, flowtest.ErrFailed
				case j.Node.Path == "a" && j.Node.Run == 1:
					return map[string]string{"list": `["x", "y"]`}, gates.wait(ctx, "a")
				case j.Node.Path == "a":
					began <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, nil
			})
			h.push(write(t, map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "in.txt": "from a file\n", "f.flow": `
nodes:
  - {name: a, type: test, config: {use.executor: "1", text: "${who-ever}"}}
  - {name: each, type: test, dependsOn: [a], for_each: "${a:list}", config: {text: "${item}"}}
  - {name: b, type: test, dependsOn: [each]}
  - {name: c, type: command, dependsOn: [b], config: {command: cat in.txt}}
`}))
			if v, err := h.flows.Versions(t.Context(), "p", 1); err != nil || len(v) != 1 || len(v[0].Notes) == 0 {
				t.Errorf("versions with notes: %+v, %v", v, err)
			}
			first := h.start("f", flow.Options{
				Params: map[string]string{"x": "y"}, SLAs: []flow.SLA{{Node: "a", Within: flow.Duration(time.Hour), Kill: true}},
			})
			h.eventually(first, "a", "RUNNING")
			must(t, h.flows.Pause(t.Context(), first))
			h.status(first, "PAUSED")
			second := h.start("f", flow.Options{Concurrent: flow.Queue})
			must(t, h.flows.Resume(t.Context(), first))
			gates.open("a")
			equal(t, "first", h.ended(first), "FAILED: a=SUCCEEDED b=FAILED c=CANCELLED each=SUCCEEDED each[0]=SUCCEEDED each[1]=SUCCEEDED")
			<-began // one that is killed before its worker begins is CANCELLED
			must(t, h.flows.Kill(t.Context(), second))
			equal(t, "second", h.ended(second), "KILLED: a=KILLED b=CANCELLED c=CANCELLED each=CANCELLED")
			must(t, h.flows.MarkSucceeded(t.Context(), second, "a"))
			must(t, h.flows.Retry(t.Context(), first))
			equal(t, "retried", h.ended(first), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=SUCCEEDED each=SUCCEEDED each[0]=SUCCEEDED each[1]=SUCCEEDED")
			equal(t, "log", h.log(first, "c"), "from a file\n")
			must(t, h.flows.Rerun(t.Context(), first, "c"))
			h.ended(first)
			if runs, err := h.flows.Runs(t.Context(), flow.RunFilter{}, 10); err != nil || len(runs) != 2 {
				t.Errorf("runs: %d, %v", len(runs), err)
			}
			if list, err := h.flows.Flows(t.Context(), "p"); err != nil || len(list) != 1 {
				t.Errorf("flows: %v, %v", list, err)
			}
			if why, err := h.flows.Why(t.Context(), first, "c"); err != nil || why == "" {
				t.Errorf("why: %q, %v", why, err)
			}
		})
	}
}
