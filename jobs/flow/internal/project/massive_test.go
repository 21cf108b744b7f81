package project_test

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
)

// massive returns the 7,121 jobs of a real project: Azkaban's case 20.
func massive(t testing.TB) fstest.MapFS {
	t.Helper()
	in, err := os.Open(filepath.Join(azkaban(t), "20-v1-massive-7121", "massive-flows.tar.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}()
	fsys := fstest.MapFS{}
	for r := tar.NewReader(bzip2.NewReader(in)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return fsys
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		fsys[filepath.Clean(h.Name)] = &fstest.MapFile{Data: data, Mode: 0o644}
	}
}

func TestMassiveProject(t *testing.T) {
	t.Parallel()
	zip := zipped(t, massive(t))
	b, faults, err := bundle.Zip(zip, zip.Size(), bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	p, faults, notes := project.Read(b, project.Options{})
	if len(faults) > 0 || len(notes) > 0 {
		t.Fatal(list("fault", faults), list("note", notes))
	}
	jobs, edges := map[string]bool{}, map[string]bool{}
	largest, deepest := 0, 0
	for _, f := range p.Flows {
		largest = max(largest, len(f.Nodes))
		depth := make([]int, len(f.Nodes))
		for i, n := range f.Nodes {
			jobs[n.Path] = true
			depth[i] = 1
			for _, parent := range n.Parents {
				edges[f.Nodes[parent].Path+" "+n.Path] = true
				depth[i] = max(depth[i], depth[parent]+1)
			}
			deepest = max(deepest, depth[i])
			if n.Config["command"] != "echo test" && n.Type == graph.TypeCommand {
				t.Fatalf("%s runs %q", n.Path, n.Config["command"])
			}
		}
		if ends := f.Index().Ends[graph.Top]; len(ends) != 1 || f.Nodes[ends[0]].Path != f.Name {
			t.Errorf("the ends of flow %s are %v", f.Name, ends)
		}
	}
	got := fmt.Sprintf("%d jobs, %d edges, %d flows, depth %d, largest flow %d jobs", len(jobs), len(edges), len(p.Flows), deepest, largest)
	if want := "7121 jobs, 12208 edges, 185 flows, depth 47, largest flow 342 jobs"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func BenchmarkMassiveProject(b *testing.B) {
	zip := zipped(b, massive(b))
	b.ReportAllocs()
	var project *graph.Project
	for b.Loop() {
		project = readZip(b, zip)
	}
	nodes := 0
	for _, f := range project.Flows {
		nodes += len(f.Nodes)
	}
	b.ReportMetric(float64(nodes), "nodes")
	b.ReportMetric(heldBy(b, func() any { return readZip(b, zip) }), "MB-held")
}

func readZip(t testing.TB, zip *bytes.Reader) *graph.Project {
	t.Helper()
	upload, faults, err := bundle.Zip(zip, zip.Size(), bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	p, faults, _ := project.Read(upload, project.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return p
}

// heldBy returns the megabytes of the heap that something takes when all garbage is gone.
func heldBy(t testing.TB, hold func() any) float64 {
	t.Helper()
	var before, after runtime.MemStats
	debug.FreeOSMemory()
	runtime.ReadMemStats(&before)
	held := hold()
	debug.FreeOSMemory()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(held)
	return float64(after.HeapAlloc-before.HeapAlloc) / 1e6
}
