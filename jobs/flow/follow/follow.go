// Package follow is what package flow tells whoever follows its runs, tracing say, and what that one may add to them. It knows neither
// package flow nor how runs are followed, so that each side does without the other.
package follow

import (
	"context"
	"time"
)

// Observer follows runs of flows. Its methods must be quick and must not block. Safe for concurrent use.
type Observer interface {
	// Created is called for a run that is about to be stored, in the transaction that may yet be rolled back. What it returns is kept with
	// the run; "": nobody follows it.
	Created(ctx context.Context, run Run, params map[string]string) (kept string)

	// NodeMetadata are keys for the metadata of the job of a node, of a run with something kept. Nil: none.
	NodeMetadata(run Run, path string) map[string]string

	// Context is what jobs that a run sends beside its nodes', notices, are enqueued in.
	Context(ctx context.Context, run Run) context.Context

	// Ended is told, after the commit, of a run with something kept that has ended. A process that dies in between tells nobody.
	Ended(run *Ended)
}

// Run is a run of a flow.
type Run struct {
	ID      int64 // 0: it is not stored yet
	Project string
	Version int
	Flow    string
	Kept    string    // what Created returned for it
	Resumed time.Time // when it last went on after an end; zero: it has not
}

// Ended is a run that has ended. Times are the database's.
type Ended struct {
	Run

	Status, Reason string
	By             string // who started it
	Created        time.Time
	Started        time.Time // for the first time
	Ended          time.Time
	Nodes          []Node
}

// Node is a node of a run that has ended, as it was at the end.
type Node struct {
	Path      string
	Type      string
	Container int // the place in Nodes of the embedded flow or the for_each that it is in; -1: none
	Status    string
	Reason    string
	Try       int // how often it was started over
	Attempt   int // from 0
	Job       int64
	Queued    time.Time // zero times: it was not
	Started   time.Time
	Ended     time.Time
}
