package draft

import "github.com/peltonq/pelton/jobs/flow/internal/graph"

// Project is one upload as written.
type Project struct {
	Format string
	Flows  []*Flow

	// Jobs are all jobs of a Flow 1.0 project, of which its flows are parts; nil in the other formats.
	Jobs *Set

	// Shared are its .properties files, each with its own keys only.
	Shared []Shared
}

// Shared is what one .properties file says.
type Shared struct {
	File   string
	Config graph.Config
	Lines  Lines
}

// Flow is one flow as written.
type Flow struct {
	Name    string
	File    string
	Line    int
	Config  graph.Config
	Opts    graph.Options
	Trigger *graph.Trigger
	Lines   Lines

	Nodes *Set   // its own, or
	End   string // Flow 1.0: the job of Project.Jobs that is its end; it and its ancestors are the flow
}

// Set is a set of nodes that name each other as parents.
type Set struct {
	Nodes []*Node
}

// Node is one node as written.
type Node struct {
	graph.Node // its Path, Container and Parents are not known yet

	Name  string
	After []Parent
	Lines Lines

	// An embedded flow has its nodes here, or names another flow (Flow 1.0).
	Nodes  *Set
	Embeds string
}

// Parent is the name of a parent and where it was written.
type Parent struct {
	Name string
	Line int
}

// Lines say where a key was written, as far as that is known.
type Lines map[string]int
