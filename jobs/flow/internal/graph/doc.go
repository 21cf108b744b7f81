// Package graph holds what a flow is: its nodes, their parents and settings. The readers of uploads and the builder make
// graphs, the pure core decides on them, the store keeps them as JSON. A graph never changes once its version is stored.
//
// Embedded flows are flattened: a node of type flow is a container, and its nodes name it. A node's number is its place in
// Flow.Nodes; containers stand before their contents. A node's path joins the names by colons: "outer:inner".
package graph
