// Package flow runs workflows: graphs of jobs, from Azkaban projects or built in code.
//
// # Promises
//
// A push stores a project as it is, with its files, or nothing: all its faults are reported together. A version never changes, and a
// run keeps the version that it began with.
//
// Every run reaches an end. A node's job is made once for each start of the node, in the transaction that says so: no scheduler that
// dies, and no two that work at once, start a node twice or forget one. Its program may run more than once, as any job does: after
// a retry, or when its executor was lost.
//
// What a node reads is settled when its job is made: parameters, outputs of nodes before it, the texts of its commands. A retry of the
// job has the same. A node whose parameters cannot be resolved, or whose job the queue would refuse, fails and says why.
//
// A run or node that is killed is KILLED when its programs have gone, not before. What a person does is in the audit table.
//
// # How it works
//
// A run is a row, its nodes are rows, and package internal/decide says what follows from them; the graph comes from the version. What is
// to happen to a run is written as rows of flow_report: a job's end by whoever records it, in the same transaction as the result; what a
// person asks (Kill, Retry, ...) by the client; what time brings by timers that have come. Client.Start begins an engine that advances
// runs, a few at a time: under the run's row lock it takes its reports, applies them, writes the nodes that changed, makes jobs, sets timers,
// and deletes the reports, all in one transaction, a step. A step changes some thousand nodes; what is left is another's, after that of runs
// that wait. Any number of engines may work; one that finds a run locked goes on to the next.
//
// An engine sleeps until a hint comes (NOTIFY, or a report made in its own process), a timer is due, or some seconds are over, a minute
// if nothing is live. It keeps runs in memory, and uses one only if the row's step says that nobody has written since. Graphs, and what
// follows from them alone, are kept by version.
//
// How runs of one flow stand to each other (Options.Concurrent) is decided when a run is started, or is to go on after its end, under the
// project's row lock.
//
// Executors know nothing of graphs. AddWorkers adds workers for nodes that run programs (internal/nodecmd), which lay out the files of a
// version in a directory (internal/files), and for notices. Nodes of any other kind are jobs of that kind; NodeOf tells a worker which
// node it works for.
//
// # Failure
//
// A transaction that fails changes nothing, and its reports are still there: the engine forgets what it had in memory and tries again
// later, so a run that cannot be advanced holds up no other. A hint that is lost costs seconds.
//
// A job may end with nobody to report it: cancelled while it waited, discarded by the reaper, or gone with its partition. Engines look
// for those every few seconds while runs are live. They also repeat cancels of jobs that are to be killed.
//
// While no engine runs, nodes that run go on and their reports wait. Without an executor for a node's queue or kind, its job waits.
// Ended runs, versions that no run needs and files that no version needs are deleted after Config.Retention.
package flow
