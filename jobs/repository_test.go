package jobs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = ".."

// read reads a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// matching reads all files of the repository whose name matches, hidden directories aside.
func matching(t *testing.T, pattern string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != "." {
			return fs.SkipDir
		}
		if ok, _ := filepath.Match(pattern, entry.Name()); ok && !entry.IsDir() {
			found[path] = read(t, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d files match %s: %v", len(found), pattern, err)
	}
	return found
}

// flat is a code's lines without their indentation.
func flat(code string) string {
	lines := strings.Split(strings.TrimSpace(code), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

var goFence = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// TestGoInDocumentsIsOfExamples wants every piece of Go in the README and in the guide for users of River to be a part of an
// Example, which is compiled and run.
func TestGoInDocumentsIsOfExamples(t *testing.T) {
	t.Parallel()
	var examples strings.Builder
	for _, code := range matching(t, "example_*_test.go") {
		examples.WriteString(flat(code))
	}
	pieces := 0
	for _, path := range []string{"README.md", "docs/river.md"} {
		for _, fence := range goFence.FindAllStringSubmatch(read(t, path), -1) {
			pieces++
			if !strings.Contains(examples.String(), flat(fence[1])) {
				t.Errorf("%s: this is in no Example:\n%s", path, fence[1])
			}
		}
	}
	if pieces == 0 {
		t.Fatal("no Go was found in the documents")
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noise   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfDocuments follows the links from document to document, and to headings in them.
func TestLinksOfDocuments(t *testing.T) {
	t.Parallel()
	for path, text := range matching(t, "*.md") {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join(filepath.Dir(path), target)
			if target == "" {
				file = path
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s: %v", path, found[1], err)
				continue
			}
			if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s links to %s: no such heading", path, found[1])
			}
		}
	}
}

// anchors are the names that headings get on a web page.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		names[strings.ReplaceAll(noise.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return names
}

var (
	testName = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]+)`")
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)[A-Za-z0-9_]*)\(`)
)

// TestNamedTestsExist wants every test that a document names to be there.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, code := range matching(t, "*_test.go") {
		for _, found := range testFunc.FindAllStringSubmatch(code, -1) {
			tests[found[1]] = true
		}
	}
	for path, text := range matching(t, "*.md") {
		for _, found := range testName.FindAllStringSubmatch(text, -1) {
			if !tests[found[1]] {
				t.Errorf("%s names %s, which does not exist", path, found[1])
			}
		}
	}
	for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(read(t, "Makefile"), -1) {
		if !tests[name] {
			t.Errorf("the Makefile names %s, which does not exist", name)
		}
	}
}

// TestOnlyTheTableDrawsPositions wants positions in the line drawn by the column's default alone: anything else could draw one
// before it holds the table's lock, and its row would be passed by the mark. Nothing sets a sequence either.
func TestOnlyTheTableDrawsPositions(t *testing.T) {
	t.Parallel()
	draw := regexp.MustCompile(`(?i)(nextval|setval)\s*\(\s*'[^']*job_ready_seq'|setval\s*\(`)
	draws := map[string]int{}
	for _, pattern := range []string{"*.sql", "*.go"} {
		for path, code := range matching(t, pattern) {
			if n := len(draw.FindAllString(code, -1)); n > 0 && !strings.HasSuffix(path, "_test.go") {
				draws[path] = n
			}
		}
	}
	if len(draws) != 1 || draws["schema/migrations/000001_tables.up.sql"] != 1 {
		t.Errorf("positions are drawn in %v, want once in the table's definition", draws)
	}
}
