package draw_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/draw"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// parsed checks that it is XML and returns its text.
func parsed(t *testing.T, svg []byte) string {
	t.Helper()
	var text strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
}

func TestPictureOfAFlow(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "night <run>", Nodes: []graph.Node{
		{Path: "first", Type: graph.TypeCommand, Container: graph.Top},
		{Path: "box", Type: graph.TypeFlow, Container: graph.Top, Parents: []int{0}},
		{Path: "box:in \"quotes\" \\N & so", Type: graph.TypeCommand, Container: 1},
		{Path: "box:deep", Type: graph.TypeFlow, Container: 1, Parents: []int{2}},
		{Path: "box:deep:é", Type: graph.TypeNoop, Container: 3, Condition: "one_success"},
		{Path: "last", Type: "hive", Container: graph.Top, Parents: []int{0, 1}},
	}}
	var out bytes.Buffer
	if err := draw.SVG(t.Context(), &out, f, map[string]string{"last": "FAILED"}); err != nil {
		t.Fatal(err)
	}
	text := parsed(t, out.Bytes())
	for _, want := range []string{"night <run>", "first", "box", `in "quotes" \N & so`, "deep", "é", "last", "hive"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if got := strings.Count(out.String(), `class="edge"`); got != 4 {
		t.Errorf("%d edges, want 4", got)
	}
	if !strings.Contains(out.String(), "#b42318") {
		t.Error("what failed has no colour of its own")
	}
}

func TestPictureOfALargeFlow(t *testing.T) {
	t.Parallel()
	f := &graph.Flow{Name: "f"}
	for i := range 400 {
		n := graph.Node{Path: fmt.Sprintf("n%d", i), Type: graph.TypeCommand, Container: graph.Top}
		if i > 0 {
			n.Parents = []int{(i - 1) / 3}
		}
		f.Nodes = append(f.Nodes, n)
	}
	var out bytes.Buffer
	if err := draw.SVG(t.Context(), &out, f, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), `class="node"`); got != 400 {
		t.Errorf("%d nodes, want 400", got)
	}
	f.Nodes = make([]graph.Node, draw.MaxNodes+1)
	if err := draw.SVG(t.Context(), &out, f, nil); err == nil || !strings.Contains(err.Error(), "more than 5000") {
		t.Errorf("a flow that is too large: %v", err)
	}
}

// The library writes nothing below the directory that all users share, and TMPDIR is as it was.
func TestNothingIsCachedForAllUsers(t *testing.T) {
	t.Parallel()
	if os.Getenv("PELTON_TEST_DRAW") != "" {
		t.Log("TMPDIR " + os.Getenv("TMPDIR"))
		return
	}
	shared, home := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNothingIsCachedForAllUsers$", "-test.v") //nolint:gosec // itself
	cmd.Env = []string{"PELTON_TEST_DRAW=1", "TMPDIR=" + shared, "HOME=" + home}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "TMPDIR "+shared) {
		t.Fatalf("%v\n%s", err, out)
	}
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("in the shared directory is %v (%v)", left, err)
	}
	if _, err := os.Stat(filepath.Join(home, ".cache", "pelton", "draw", "go-graphviz")); err != nil {
		t.Errorf("the user has no cache: %v", err)
	}
}
