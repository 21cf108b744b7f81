package project_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
)

var options = project.Options{Types: []string{"test", "hive"}}

// azkaban is the folder of Azkaban's own examples.
func azkaban(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PELTON_AZKABAN_DIR")
	if dir == "" {
		t.Skip("PELTON_AZKABAN_DIR is not set: there are no projects of Azkaban's to read")
	}
	return dir
}

// TestCases reads Azkaban's own projects. What comes out is in testdata/azkaban.
func TestCases(t *testing.T) {
	t.Parallel()
	dir := azkaban(t)
	datadriven.Walk(t, filepath.Join("testdata", "azkaban"), func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			var name string
			d.ScanArgs(t, "path", &name)
			b, faults, err := bundle.Open(filepath.Join(dir, name), bundle.Limits{})
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			defer closeBundle(t, b)
			return list("fault", faults) + describe(b, d.HasArg("config"))
		})
	})
}

// TestReports reads small projects that are written down in testdata/reports, each file after its name.
func TestReports(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, filepath.Join("testdata", "reports"), func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			b, faults, err := bundle.Dir(files(d.Input), bundle.Limits{})
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return list("fault", faults) + describe(b, d.HasArg("config"))
		})
	})
}

// files splits a text at lines "-- name --"; name@ is a symbolic link.
func files(text string) fstest.MapFS {
	fsys := fstest.MapFS{}
	name := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "-- "); ok {
			name = strings.TrimSuffix(strings.TrimSpace(rest), " --")
			fsys[name] = &fstest.MapFile{}
			if link, ok := strings.CutSuffix(name, "@"); ok {
				delete(fsys, name)
				fsys[link] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("somewhere")}
			}
			continue
		}
		fsys[name].Data = append(fsys[name].Data, strings.ReplaceAll(line, "<tab>", "\t")...)
	}
	return fsys
}

func describe(b *bundle.Bundle, config bool) string {
	p, faults, notes := project.Read(b, options)
	text := list("fault", faults) + list("note", notes)
	if p != nil {
		text += show(p, config)
	}
	return text
}

func list(word string, faults []graph.Fault) string {
	var b strings.Builder
	for _, f := range faults {
		fmt.Fprintf(&b, "%s: %s\n", word, f)
	}
	return b.String()
}

// show writes a project for people: a line per node, with its parents.
func show(p *graph.Project, config bool) string {
	var b strings.Builder
	for _, f := range p.Flows {
		fmt.Fprintf(&b, "%s flow %s (%s)", p.Format, f.Name, f.File)
		if o := fmt.Sprintf("%+v", f.Opts); o != fmt.Sprintf("%+v", graph.Options{}) {
			fmt.Fprintf(&b, " %s", o)
		}
		if f.Trigger != nil {
			fmt.Fprintf(&b, " trigger %q max %v", f.Trigger.Schedule, time.Duration(f.Trigger.MaxWait))
		}
		b.WriteString("\n")
		if config {
			b.WriteString(settings("  config", f.Config))
		}
		for _, n := range f.Nodes {
			fmt.Fprintf(&b, "  %s %s", n.Path, n.Type)
			for i, parent := range n.Parents {
				b.WriteString(map[bool]string{true: " <-", false: ""}[i == 0] + " " + f.Nodes[parent].Path)
			}
			if n.Condition != "" {
				fmt.Fprintf(&b, " if %s", n.Condition)
			}
			b.WriteString(extras(n) + "\n")
			if config {
				b.WriteString(settings("    config", n.Config) + settings("    shared", n.Shared))
			}
		}
	}
	return b.String()
}

func extras(n graph.Node) string {
	var b strings.Builder
	if n.Retry != (graph.Retry{}) {
		fmt.Fprintf(&b, " retry max=%d set=%v backoff=%v..%v jitter=%v", n.Retry.Max, n.Retry.Set,
			time.Duration(n.Retry.Backoff), time.Duration(n.Retry.MaxBackoff), n.Retry.Jitter)
	}
	if n.ForEach != nil {
		fmt.Fprintf(&b, " for_each %+v", *n.ForEach)
	}
	if n.Queue != "" || n.Priority != 0 || n.Timeout != 0 || n.SucceedOnFailure {
		fmt.Fprintf(&b, " queue=%s priority=%d timeout=%v succeed=%v", n.Queue, n.Priority, time.Duration(n.Timeout), n.SucceedOnFailure)
	}
	return b.String()
}

func settings(title string, c graph.Config) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s %s=%q\n", title, key, c[key])
	}
	return b.String()
}

func closeBundle(t testing.TB, b *bundle.Bundle) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// zipped returns files as a zip.
func zipped(t testing.TB, fsys fstest.MapFS) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := w.AddFS(fsys); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}
