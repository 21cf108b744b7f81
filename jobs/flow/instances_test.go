package flow_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// Instances of a for_each are nodes of their own to people: in a run's options, before they are there, and in what is asked of a run.
func TestInstancesByTheirPaths(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ran := map[string]string{}
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		mu.Lock()
		ran[j.Node.Path] = j.Args["text"]
		mu.Unlock()
		switch {
		case j.Node.Path == "list":
			return map[string]string{"items": `["x","y","z"]`}, nil
		case j.Node.Path == "each[2]" && j.Node.Try == 0:
			<-ctx.Done() // until its limit
			return nil, ctx.Err()
		case j.Node.Path == "fixed[0]" && j.Node.Try < 2:
			return nil, flowtest.ErrFailed
		}
		return nil, nil
	})
	h.push(yaml(t, `
nodes:
  - {name: list, type: test}
  - {name: each, type: test, dependsOn: [list], for_each: "${list:items}", config: {text: "${item} ${more}"}}
  - {name: fixed, type: test, for_each: [p, q], config: {text: "${item}"}}
  - {name: after, type: test, dependsOn: [each, fixed]}
`))
	options := flow.Options{
		OnFailure: flow.FinishPossible, Params: map[string]string{"more": "common"}, Disabled: []string{"each[1]"},
		NodeParams: map[string]map[string]string{"each[0]": {"more": "own"}, "fixed[1]": {"item": "mine"}},
		SLAs:       []flow.SLA{{Node: "each[2]", Within: flow.Duration(100 * time.Millisecond), Kill: true}},
	}
	asked := func() []string {
		mu.Lock()
		defer mu.Unlock()
		paths := slices.Sorted(maps.Keys(ran))
		clear(ran)
		return paths
	}
	run := h.start("f", options)
	equal(t, "run", h.ended(run), "FAILED: after=CANCELLED each=FAILED each[0]=SUCCEEDED each[1]=SKIPPED each[2]=FAILED fixed=FAILED fixed[0]=FAILED fixed[1]=SUCCEEDED list=SUCCEEDED")
	equal(t, "texts", ran["each[0]"]+", "+ran["each[2]"]+", "+ran["fixed[1]"], "x own, z common, q")
	asked()

	must(t, h.flows.MarkSucceeded(t.Context(), run, "each[2]"))
	equal(t, "marked", h.ended(run), "FAILED: after=CANCELLED each=SUCCEEDED each[0]=SUCCEEDED each[1]=SKIPPED each[2]=SUCCEEDED fixed=FAILED fixed[0]=FAILED fixed[1]=SUCCEEDED list=SUCCEEDED")
	must(t, h.flows.Retry(t.Context(), run, "fixed[0]"))
	h.ended(run)
	must(t, h.flows.Rerun(t.Context(), run, "fixed[0]"))
	equal(t, "at last", h.ended(run), "SUCCEEDED: after=SUCCEEDED each=SUCCEEDED each[0]=SUCCEEDED each[1]=SKIPPED each[2]=SUCCEEDED fixed=SUCCEEDED fixed[0]=SUCCEEDED fixed[1]=SUCCEEDED list=SUCCEEDED")
	equal(t, "what ran again", strings.Join(asked(), " "), "after fixed[0]")
	must(t, h.flows.Rerun(t.Context(), run, "each[0]"))
	h.ended(run)
	equal(t, "what ran again", strings.Join(asked(), " "), "after each[0]")

	for path, want := range map[string]string{
		"each[3]": "each has 3 instances, and no each[3]", "after[0]": `flow f has no node "after[0]"`, "each[x]": `flow f has no node "each[x]"`,
	} {
		if err := h.flows.Rerun(t.Context(), run, path); !errors.Is(err, flow.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("rerun of %s: %v, want %q", path, err, want)
		}
	}
	for path, want := range map[string]string{
		"fixed[2]":     "the for_each of node fixed of flow f has 2 items, and so no fixed[2]",
		"after[0]":     "node after of flow f has no for_each, and so no after[0]",
		"nobody[0]":    `flow f has no node "nobody[0]"`,
		"each[999999]": "a for_each has up to 200000 instances, and so no each[999999]",
		"each[01]":     `flow f has no node "each[01]"`,
	} {
		_, err := h.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "f", Options: flow.Options{
			Disabled: []string{path}, NodeParams: map[string]map[string]string{path: {"a": "b"}}, SLAs: []flow.SLA{{Node: path, Within: 1, Kill: true}},
		}})
		if err == nil || strings.Count(err.Error(), want) != 3 {
			t.Errorf("options with %s: %v, want %q three times", path, err, want)
		}
	}
}
