package flow_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// outputsOfA has test jobs without fail pass, and the one at path a with these outputs.
func outputsOfA(outputs map[string]string) decideFunc {
	return func(_ context.Context, j flowtest.Job) (map[string]string, error) {
		if j.Node.Path == "jobA" {
			return outputs, nil
		}
		return nil, nil
	}
}

func TestCase11Conditions(t *testing.T) {
	t.Parallel()
	dir := cases(t, "11-yaml-conditional-set")
	for name, c := range map[string]struct {
		outputs map[string]string
		fail    []string
		want    string
	}{
		"conditional_flow2": {
			map[string]string{"key1": "value1", "key2": "value2", "key3": "value4"},
			nil,
			"KILLED: jobA=SUCCEEDED jobB=SUCCEEDED jobC=CANCELLED jobD=CANCELLED",
		},
		"conditional_flow4": {nil, []string{"jobA", "jobB"}, "SUCCEEDED: jobA=FAILED jobB=FAILED jobC=SUCCEEDED"},
		"conditional_flow5": {nil, []string{"jobB"}, "SUCCEEDED: jobA=SUCCEEDED jobB=FAILED jobC=SUCCEEDED"},
		"conditional_flow6": {
			map[string]string{"props": "foo"},
			nil,
			"SUCCEEDED: jobA=SUCCEEDED jobB=SUCCEEDED jobC=CANCELLED jobD=SUCCEEDED",
		},
		"conditional_flow8": {
			map[string]string{"key1": "value1", "key2": "value2"},
			nil,
			"KILLED: jobA=SUCCEEDED jobB=SUCCEEDED jobC=CANCELLED jobD=CANCELLED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
				if slices.Contains(c.fail, j.Node.Path) {
					return nil, errors.New("asked to fail")
				}
				return outputsOfA(c.outputs)(ctx, j)
			})
			h.push(dir)
			equal(t, name, h.ended(h.start(name, flow.Options{})), c.want)
		})
	}
}

// dag is a copy of case 14 with some files put in the place of others.
func dag(t *testing.T, replace map[string]string) string {
	t.Helper()
	from := cases(t, "14-v1-dag-failure-actions-retry")
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(from, e.Name())) //nolint:gosec // the test's
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	maps.Copy(files, replace)
	return write(t, files)
}

// Beside the case's own job6, which runs when job2 fails, there is one that does not run yet: late waits for gate, which runs as well.
func TestCase14FailureActions(t *testing.T) {
	t.Parallel()
	const rest = "job2=FAILED job3=CANCELLED job4=CANCELLED job5=CANCELLED "
	for action, want := range map[flow.OnFailure]string{
		"":                  "FAILED: gate=SUCCEEDED job1=SUCCEEDED job10=CANCELLED " + rest + "job6=SUCCEEDED job7=CANCELLED job8=CANCELLED job9=CANCELLED late=CANCELLED",
		flow.CancelAll:      "KILLED: gate=KILLED job1=SUCCEEDED job10=CANCELLED " + rest + "job6=KILLED job7=CANCELLED job8=CANCELLED job9=CANCELLED late=CANCELLED",
		flow.FinishPossible: "FAILED: gate=SUCCEEDED job1=SUCCEEDED job10=CANCELLED " + rest + "job6=SUCCEEDED job7=CANCELLED job8=CANCELLED job9=CANCELLED late=SUCCEEDED",
	} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			var gates gate
			h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
				switch j.Node.Path {
				case "job2":
					return nil, errors.Join(gates.wait(ctx, "job6 runs"), gates.wait(ctx, "gate runs"), errors.New("asked to fail"))
				case "job6", "gate":
					gates.open(j.Node.Path + " runs")
					return nil, gates.wait(ctx, "job2 has failed")
				}
				return nil, nil
			})
			h.push(dag(t, map[string]string{
				"job2.job": "type=test\ndependencies=job1\n", "job6.job": "type=test\ndependencies=job1\n",
				"gate.job": "type=test\ndependencies=job1\n", "late.job": "type=test\ndependencies=gate\n",
				"job10.job": "type=noop\ndependencies=job8,job9,late\n",
			}))
			run := h.start("job10", flow.Options{OnFailure: action})
			h.eventually(run, "job2", "FAILED")
			if action != flow.CancelAll {
				gates.open("job2 has failed")
			}
			equal(t, "run", h.ended(run), want)
		})
	}
}

// Its jobs sleep for minutes: but for the one that is to fail and what depends on it, they are disabled.
func TestCase26TestFlows(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dir := cases(t, "26-v1-zip-testflow")
	h.push(filepath.Join(dir, "testFlow.zip"))
	if list, err := h.flows.Flows(t.Context(), "p"); err != nil || len(list) == 0 {
		t.Errorf("flows of testFlow.zip: %v, %v", list, err)
	}
	h.push(filepath.Join(dir, "flowTestWithError.zip"))
	run := h.start("1009", flow.Options{Disabled: []string{"1000", "1002", "1003", "1004", "1006", "1008"}})
	equal(t, "flowTestWithError.zip", h.ended(run),
		"FAILED: 1000=SKIPPED 1001=FAILED 1002=SKIPPED 1003=SKIPPED 1004=SKIPPED 1005=CANCELLED 1006=SKIPPED 1007=CANCELLED 1008=SKIPPED 1009=CANCELLED")
	if why, err := h.flows.Why(t.Context(), run, "1001"); err != nil || !strings.Contains(why, "wrongcommand") {
		t.Errorf("why 1001 failed: %q, %v", why, err)
	}
}

func TestCase14NormalDisabledAndRetries(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(cases(t, "14-v1-dag-failure-actions-retry"))
	all := "SUCCEEDED: job1=SUCCEEDED job10=SUCCEEDED job2=SUCCEEDED job3=SUCCEEDED job4=SUCCEEDED job5=SUCCEEDED job6=SUCCEEDED job7=SUCCEEDED job8=SUCCEEDED job9=SUCCEEDED"
	equal(t, "normal", h.ended(h.start("job10", flow.Options{})), all)
	equal(t, "disabled", h.ended(h.start("job10", flow.Options{Disabled: []string{"job1", "job5", "job6", "job10"}})),
		"SUCCEEDED: job1=SKIPPED job10=SKIPPED job2=SUCCEEDED job3=SUCCEEDED job4=SUCCEEDED job5=SKIPPED job6=SKIPPED job7=SUCCEEDED job8=SUCCEEDED job9=SUCCEEDED")
	for name, want := range map[string]struct {
		status  string
		attempt int
	}{"job-retry": {"SUCCEEDED", 3}, "job-retry-fail": {"FAILED", 2}} {
		run := h.start(name, flow.Options{})
		equal(t, name, h.ended(run), want.status+": "+name+"="+want.status)
		r, err := h.flows.Get(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Nodes[0].Attempt; got != want.attempt {
			t.Errorf("%s: the last attempt is %d, want %d", name, got, want.attempt)
		}
	}
}

func TestCase14Kill(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	h := newHouse(t, func(ctx context.Context, j flowtest.Job) (map[string]string, error) {
		switch j.Node.Path {
		case "job3", "job4", "job6":
			<-ctx.Done()
			if j.Node.Path == "job6" { // is slow to die
				<-release
			}
			return nil, ctx.Err()
		}
		return nil, nil
	})
	slow := func(parent string) string { return "type=test\ndependencies=" + parent + "\n" }
	h.push(dag(t, map[string]string{"job3.job": slow("job2"), "job4.job": slow("job2"), "job6.job": slow("job1")}))
	run := h.start("job10", flow.Options{})
	for _, path := range []string{"job3", "job4", "job6"} {
		h.eventually(run, path, "RUNNING")
	}
	if err := h.flows.Kill(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	h.eventually(run, "job3", "KILLED")
	h.eventually(run, "job4", "KILLED")
	r, err := h.flows.Get(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != "KILLING" {
		t.Errorf("the run is %s while a job dies, want KILLING", r.Status)
	}
	close(release)
	equal(t, "killed", h.ended(run),
		"KILLED: job1=SUCCEEDED job10=CANCELLED job2=SUCCEEDED job3=KILLED job4=KILLED job5=CANCELLED job6=KILLED job7=CANCELLED job8=CANCELLED job9=CANCELLED")
	if err := h.flows.Kill(t.Context(), run); !errors.Is(err, flow.ErrEnded) {
		t.Errorf("killing it again: %v, want ErrEnded", err)
	}
}

func TestCases12And13AreRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dirs := []string{cases(t, "12-yaml-invalid-conditions")}
	entries, err := os.ReadDir(cases(t, "13-yaml-invalid-structure"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		dirs = append(dirs, filepath.Join(cases(t, "13-yaml-invalid-structure"), e.Name()))
	}
	for i, dir := range dirs {
		var faults *flow.FaultsError
		report, err := h.flows.Push(t.Context(), "p", dir)
		if !errors.As(err, &faults) || report.Version != nil {
			t.Errorf("%s: %v, want faults", filepath.Base(dir), err)
			continue
		}
		if i == 0 && len(faults.Faults) != 5 {
			t.Errorf("case 12 has %d faults, want 5:\n%v", len(faults.Faults), err)
		}
	}
	var rows int
	err = h.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_project) + (SELECT count(*) FROM pelton.flow_version)
		+ (SELECT count(*) FROM pelton.flow_content) + (SELECT count(*) FROM pelton.audit)`).Scan(&rows)
	if err != nil || rows != 0 {
		t.Errorf("%d rows were stored (%v)", rows, err)
	}
}

// A condition sees a job's inputs where it has no output of that name.
func TestConditionOnAnInput(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.push(yaml(t, `
config: {size: "12"}
nodes:
  - {name: a, type: test, config: {double: "$(${size}*2)"}}
  - {name: b, type: test, dependsOn: [a], condition: "${a:double} == 24"}
  - {name: c, type: test, dependsOn: [a], condition: "${a:size} > 12"}
  - {name: d, type: test, dependsOn: [b, c], condition: one_success}
`))
	equal(t, "run", h.ended(h.start("f", flow.Options{})), "SUCCEEDED: a=SUCCEEDED b=SUCCEEDED c=CANCELLED d=SUCCEEDED")
}
