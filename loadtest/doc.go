// Package loadtest puts the queue under load and measures it, side by side with River on the same private server.
//
// # Scenarios
//
// [Drain] inserts many no-op jobs in bulk and works them off. [Wake] measures how long an idle executor takes to start a
// job that was just committed. [Idle] counts what an idle executor asks of the database. [Flow] runs large and long flows, [Burst] has many
// schedules come due in the same second, and [Schedules] compares what firing costs when few and when many are stored; these are Pelton's
// alone. Each prints a table for people and, when asked, one line of JSON for programs as its last.
//
// # What makes the comparison fair
//
// Both engines run the same worker (one river.Worker), with the same arguments, from this process, with pools of the same
// size, on one server with fsync and synchronous_commit on. Rounds alternate between the engines, and which comes first
// alternates too; ratios are taken within a round. Each round works in a database of its own, copied from a freshly
// migrated one, after a checkpoint; statistics are gathered between insert and drain. A warm-up tries each engine with
// 1,000 and with 2,000 workers and keeps the better. River is set to the shortest times that help it here.
//
// The clock of a drain runs from the client's Start until the database says that all jobs are completed, as seen by a
// session outside of the engine's pool.
//
// # Failure
//
// A figure is only given when the books agree: each job ran exactly once in the worker, and the database holds exactly
// that many jobs, each completed once, and nothing that waits. Anything else, a job that makes no progress for a minute
// included, is a [CountError].
package loadtest
