package nodecmd

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/line"
)

// Memory of a java process whose node does not say.
const (
	defaultXms = "64M"
	defaultXmx = "256M"
)

// java is the command line of a javaprocess node. Without a classpath it is all jars of the working directory.
func java(properties map[string]string, dir string) ([]string, error) {
	class := strings.TrimSpace(properties["java.class"])
	if class == "" {
		return nil, errors.New("javaprocess node has no java.class")
	}
	places := listOf(properties["classpath"])
	if len(places) == 0 {
		jars, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.jar"))
		if err != nil {
			return nil, fmt.Errorf("look for jars: %w", err)
		}
		for _, jar := range jars {
			places = append(places, filepath.Base(jar))
		}
	}
	argv := append([]string{"java"}, line.Split(properties["jvm.args"])...)
	argv = append(argv, "-Xms"+orDefault(properties["Xms"], defaultXms), "-Xmx"+orDefault(properties["Xmx"], defaultXmx))
	if len(places) > 0 {
		argv = append(argv, "-cp", strings.Join(places, string(filepath.ListSeparator)))
	}
	return append(append(argv, class), line.Split(properties["main.args"])...), nil
}

// listOf splits at commas.
func listOf(text string) (list []string) {
	for part := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(part))
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

func orDefault(text, otherwise string) string {
	if text = strings.TrimSpace(text); text == "" {
		return otherwise
	}
	return text
}

// escapeGlob has a directory's name stand for itself in a pattern.
func escapeGlob(dir string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(dir)
}
