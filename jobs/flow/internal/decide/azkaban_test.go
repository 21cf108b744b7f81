package decide

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
)

// TestAzkabanProjects: every flow of Azkaban's own projects comes to its end as all its jobs succeed and as each one fails, and each
// failure is told; whatever the failure action.
func TestAzkabanProjects(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PELTON_AZKABAN_DIR")
	if dir == "" {
		t.Skip("PELTON_AZKABAN_DIR is not set: there are no projects of Azkaban's to read")
	}
	for _, name := range []string{
		"01-flow20-basic", "04-yaml-shell-fanin", "05-yaml-sleep", "06-yaml-embedded-2level", "10-yaml-embedded-chain",
		"14-v1-dag-failure-actions-retry", "16-v1-param-precedence", "20-v1-massive-7121",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, flow := range readProject(t, filepath.Join(dir, name)).Flows {
				runs(t, flow)
			}
		})
	}
}

func readProject(t *testing.T, path string) *graph.Project {
	t.Helper()
	open := func() (*bundle.Bundle, []graph.Fault, error) { return bundle.Open(path, bundle.Limits{}) }
	if archives, _ := filepath.Glob(filepath.Join(path, "*.tar.bz2")); len(archives) > 0 {
		open = func() (*bundle.Bundle, []graph.Fault, error) {
			return bundle.Dir(unpacked(t, archives[0]), bundle.Limits{})
		}
	}
	b, faults, err := open()
	if err != nil || b == nil {
		t.Fatal(err, faults)
	}
	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, faults, _ := project.Read(b, project.Options{Types: []string{"test"}})
	if p == nil {
		t.Fatal(faults)
	}
	return p
}

// unpacked reads a .tar.bz2 into memory.
func unpacked(t *testing.T, path string) fs.FS {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	files := fstest.MapFS{}
	archive := tar.NewReader(bzip2.NewReader(file))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.ToSlash(filepath.Clean(header.Name))] = &fstest.MapFile{Data: data}
	}
}

// runs runs a flow with nothing failing, and with each node failing in turn; in a large flow, some of them.
func runs(t *testing.T, flow *graph.Flow) {
	t.Helper()
	plan := mustPlan(t, flow)
	if status := runFailing(t, plan, Settings{}, None); status != Succeeded {
		t.Errorf("%s: nothing fails, and it is %s", flow.Name, status)
	}
	actions := map[graph.OnFailure]Status{graph.FinishCurrent: Failed, graph.FinishPossible: Failed, graph.CancelAll: Killed}
	for n := 0; n < len(flow.Nodes); n += 1 + len(flow.Nodes)/20 {
		if kind := flow.Nodes[n].Type; kind == graph.TypeFlow || kind == graph.TypeNoop {
			continue
		}
		for action, want := range actions {
			if status := runFailing(t, plan, Settings{OnFailure: action}, n); status != want {
				t.Errorf("%s, %s: %s fails, and it is %s", flow.Name, action, flow.Nodes[n].Path, status)
			}
		}
	}
}

// runFailing runs a flow in which one node fails, and returns how it ended.
func runFailing(t *testing.T, plan *Plan, settings Settings, failing int) Status {
	t.Helper()
	nodes, err := plan.NewNodes()
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, plan, Run{Status: Preparing, Settings: settings}, nodes)
	first := None
	for e := m.Apply(Begin{}); len(e.Start) > 0 || m.RunningJobs() > 0; {
		for n := range m.Len() {
			if !m.hasJob(n) {
				continue
			}
			outcome := JobSucceeded
			switch {
			case n == failing:
				outcome = JobFailed
			case m.Node(n).Status == Killing:
				outcome = JobKilled
			}
			if e = m.Apply(Ended{Node: n, Outcome: outcome}); e.FirstFailure != None {
				first = e.FirstFailure
			}
		}
	}
	if first != failing {
		t.Errorf("%s: node %d failed, and %d is told", plan.Flow().Name, failing, first)
	}
	return m.Run().Status
}
