// Package line reads the command lines of nodes, as Azkaban does.
package line
