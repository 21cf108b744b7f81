package nodecmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

func TestJavaCommandLine(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a[b]*")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"two.jar", "one.jar", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		properties map[string]string
		want       string
	}{
		{map[string]string{"java.class": "a.Main"}, "java|-Xms64M|-Xmx256M|-cp|one.jar:two.jar|a.Main"},
		{map[string]string{
			"java.class": " a.Main ", "classpath": "lib/*, my dir/x.jar,", "Xms": "1G", "Xmx": "2G",
			"jvm.args": "-Da=b  '-Dc=d e'", "main.args": `one "two  words"`,
		}, "java|-Da=b|-Dc=d e|-Xms1G|-Xmx2G|-cp|lib/*:my dir/x.jar|a.Main|one|two  words"},
	} {
		argvs, err := Args{Type: graph.TypeJavaProcess, Properties: test.properties}.argvs(dir)
		if err != nil || len(argvs) != 1 || strings.Join(argvs[0], "|") != test.want {
			t.Errorf("%v: got %q, want %s: %v", test.properties, argvs, test.want, err)
		}
	}
}

func TestNodesWithoutAProgram(t *testing.T) {
	t.Parallel()
	for want, args := range map[string]Args{
		"no java.class":         {Type: graph.TypeJavaProcess},
		"no command":            {Type: graph.TypeCommand},
		"command 2 of the node": {Type: graph.TypeCommand, Commands: []string{"true", " ''"}},
		"NUL byte":              {Type: "hive", Commands: []string{"echo \x00"}},
	} {
		if argvs, err := args.argvs("."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %q, %v, want an error with %q", args, argvs, err, want)
		}
	}
}
