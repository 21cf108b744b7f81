package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
)

// The massive project: thousands of .job files of an Azkaban project, each run as a command job through pelton dev.
//
//	PELTON_AZKABAN_DIR  directory that holds 20-v1-massive-7121, as files or as a .tar.bz2; without it a project is made up
//	PELTON_MASSIVE      "all" runs all of it; else a part is run
const (
	massiveName = "20-v1-massive-7121"
	massiveAll  = 7121
	massivePart = 300
)

// projectJob is one .job file.
type projectJob struct {
	name       string
	properties map[string]string
}

func TestMassiveProject(t *testing.T) {
	t.Parallel()
	project := massiveProject(t)
	limit := 3 * time.Minute
	if os.Getenv("PELTON_MASSIVE") == "all" {
		limit = 20 * time.Minute
	} else {
		project = project[:min(massivePart, len(project))]
	}
	d := launchDev(t, devDir(t), "--queues", "default:30")
	s := d.shell()
	answer := s.object("job", "enqueue", "--file", projectLines(t, project))
	if want := json.Number(fmt.Sprint(len(project))); answer["enqueued"] != want {
		t.Fatalf("enqueued: %v, want %v", answer, want)
	}
	begun := time.Now()
	pool := s.pool()
	pgtest.Retry(t, limit, func(ctx context.Context) error {
		var completed int
		err := pool.QueryRow(ctx, "SELECT count(*) FROM pelton.job_attempt WHERE outcome = 'completed'").Scan(&completed)
		if err == nil && completed < len(project) {
			err = fmt.Errorf("%d of %d jobs are completed", completed, len(project))
		}
		return err
	})
	t.Logf("%d commands in %v", len(project), time.Since(begun).Round(time.Millisecond))
	var attempts, lost int
	err := pool.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM pelton.job_attempt), (SELECT count(*) FROM pelton.lost_jobs('0'))").
		Scan(&attempts, &lost)
	if err != nil || attempts != len(project) || lost != 0 {
		t.Errorf("%d runs of %d jobs, %d lost: %v", attempts, len(project), lost, err)
	}
	step := max(1, len(project)/20)
	for i := 0; i < len(project); i += step {
		job := project[i]
		found := s.lines("job", "list", "--tag", job.tag())
		if len(found) != 1 || found[0]["state"] != "completed" {
			t.Fatalf("jobs of %s: %v", job.name, found)
		}
		want := strings.TrimPrefix(job.properties["command"], "echo ") + "\n"
		if got := s.ok("job", "logs", fmt.Sprint(found[0]["id"])); got != want {
			t.Errorf("log of %s is %q, want %q", job.name, got, want)
		}
	}
	d.stop()
}

func (j projectJob) tag() string { return "file-" + j.name }

// projectLines writes a project as a file of command jobs. Dependencies are left out: each job stands alone.
func projectLines(t *testing.T, project []projectJob) string {
	t.Helper()
	var lines []string
	for _, job := range project {
		if job.properties["type"] != "command" {
			t.Fatalf("%s has type %q, want command", job.name, job.properties["type"])
		}
		line, err := json.Marshal(map[string]any{
			"kind": "command", "args": map[string]string{"command": job.properties["command"]}, "tags": []string{job.tag()},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return writeLines(t, lines...)
}

func massiveProject(t *testing.T) []projectJob {
	t.Helper()
	root := os.Getenv("PELTON_AZKABAN_DIR")
	if root == "" {
		return madeUpProject(t)
	}
	files := map[string]string{}
	dir := filepath.Join(root, massiveName)
	archives, err := filepath.Glob(filepath.Join(dir, "*.tar.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		readArchive(t, archive, files)
	}
	readDirectory(t, dir, files)
	if len(files) != massiveAll {
		t.Fatalf("%s holds %d .job files, want %d", dir, len(files), massiveAll)
	}
	return parseProject(t, files)
}

// madeUpProject stands in for the real one where that is absent.
func madeUpProject(t *testing.T) []projectJob {
	t.Helper()
	files := map[string]string{}
	for i := range massiveAll {
		files[fmt.Sprintf("%d.job", i)] = fmt.Sprintf("# one of many\ntype=command\ncommand=echo this is %d\ndependencies=%d\n", i, i+1)
	}
	return parseProject(t, files)
}

func readArchive(t *testing.T, name string, files map[string]string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	archive := tar.NewReader(bzip2.NewReader(bufio.NewReader(file)))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(header.Name) != ".job" {
			continue
		}
		var text bytes.Buffer
		if _, err := text.ReadFrom(archive); err != nil {
			t.Fatal(err)
		}
		files[path.Base(header.Name)] = text.String()
	}
}

func readDirectory(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".job" {
			return err
		}
		text, err := os.ReadFile(name)
		files[filepath.Base(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parseProject reads the files in order of their names. They are Java properties of the plainest kind: key=value lines.
func parseProject(t *testing.T, files map[string]string) []projectJob {
	t.Helper()
	var project []projectJob
	for name, text := range files {
		job := projectJob{strings.TrimSuffix(name, ".job"), map[string]string{}}
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' || line[0] == '!' {
				continue
			}
			key, value, ok := strings.Cut(line, "=")
			if !ok || strings.ContainsAny(line, `\:`) {
				t.Fatalf("%s: line %q is not of the form key=value", name, line)
			}
			job.properties[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
		project = append(project, job)
	}
	slices.SortFunc(project, func(a, b projectJob) int { return strings.Compare(a.name, b.name) })
	return project
}
