package nodecmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/line"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
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

	// Secrets marks references to secrets in Commands and Properties, which are resolved where the programs run.
	Secrets param.Mark `json:"secrets,omitempty"`

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
		all[i] = line.Split(text)
		switch {
		case len(all[i]) == 0:
			return nil, fmt.Errorf("command %d of the node is empty", i+1)
		case strings.Contains(text, "\x00"):
			return nil, fmt.Errorf("command %d of the node holds a NUL byte", i+1)
		}
	}
	return all, nil
}
