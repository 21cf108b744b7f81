package nodecmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Kind is the kind of these jobs.
const Kind = "flow_command"

// Args are one node, with everything resolved. All attempts of its job have the same.
type Args struct {
	Run     int64  `json:"run"`     // of the flow
	Node    string `json:"node"`    // its path: "outer:inner"
	Version int64  `json:"version"` // of the project
	Type    string `json:"type"`

	Commands   []string          `json:"commands,omitempty"` // in turn; none of a javaprocess node, whose properties say what runs
	Env        map[string]string `json:"env,omitempty"`      // beside the properties env.NAME, which it beats
	Dir        string            `json:"dir,omitempty"`      // working directory, relative to the project's; "": that
	Properties map[string]string `json:"properties,omitempty"`

	Files   int64          `json:"files"` // which project directory: what Files is asked for
	Timeout graph.Duration `json:"timeout,omitzero"`
}

// Kind implements river.JobArgs.
func (Args) Kind() string { return Kind }

// name is the last part of the node's path, by which its project knows it.
func (a Args) name() string { return a.Node[strings.LastIndexByte(a.Node, ':')+1:] }

// argvs are the programs to run, each with its arguments. dir is the working directory.
func (a Args) argvs(dir string) ([][]string, error) {
	if a.Type == graph.TypeJavaProcess && len(a.Commands) == 0 {
		argv, err := java(a.Properties, dir)
		return [][]string{argv}, err
	}
	if len(a.Commands) == 0 {
		return nil, errors.New("node has no command")
	}
	all := make([][]string, len(a.Commands))
	for i, text := range a.Commands {
		all[i] = words(text)
		switch {
		case len(all[i]) == 0:
			return nil, fmt.Errorf("command %d of the node is empty", i+1)
		case strings.Contains(text, "\x00"):
			return nil, fmt.Errorf("command %d of the node holds a NUL byte", i+1)
		}
	}
	return all, nil
}

// words splits a command as Azkaban does: at spaces, and at nothing else, outside '...' and "...". The quotes go away. Words that
// are empty do too, and a quote that is not closed reaches to the end.
func words(text string) (list []string) {
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			list = append(list, word.String())
		}
		word.Reset()
	}
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == ' ':
			end()
		default:
			word.WriteByte(c)
		}
	}
	end()
	return list
}
