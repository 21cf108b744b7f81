// Package decide is the run of a flow as a state machine: given the graph and the states of its nodes it says what starts, what is
// cancelled, and what state the run has. It has no I/O, no clock and no goroutine.
//
// A Plan is what follows from the graph alone; a Machine is one run of it. Everything a machine knows follows from the rows of the run and its
// nodes as they are between two calls of Apply, so any scheduler can make it anew at any time, in O(nodes and edges), and it goes on as
// the one before would have. Apply takes events in, decides all that follows from them, and returns effects, to be carried out in one
// transaction with the rows: if it does not commit, the machine is thrown away. An event costs O(the nodes that change and their children):
// parents are counted, not looked at. With a limit an Apply stops when it has changed so many rows, where the rows alone tell what is left to do;
// no job starts before all has been decided. What a person does (retry, rerun, mark) counts the whole run anew, as a kill looks through it.
//
// # Nodes
//
// A node is decided on when all its parents have ended, whatever its condition. A disabled one is SKIPPED. In a run that is being killed, or where
// something has failed and the failure action lets nothing start, it is CANCELLED. So it is if its condition does not hold. Otherwise it waits: to be
// released if it is held, and, if it is to become a job, for one of the run's slots, in the order of the graph. Embedded flows, for_each and noop
// take no slot. So every node reaches an end once what runs has ended, and with the last node the run does: there is no state in which it
// waits for nothing.
//
// # What has failed
//
// A FAILED node fails what it is in, the run or an embedded flow, unless it has children and all of them have a macro other than
// all_success: those deal with the failure. An embedded flow in which something has failed counts as a failure in what it is in
// at once, not when it has ended; unless it will be tried again, is tolerated in the same way, or has job.succeed.on.failure.
//
// What is in it then follows the failure action. finish_current: nothing starts any more in what has failed, with everything inside of it.
// cancel_all: if the run has failed, it is killed. finish_possible: what depends on the failed node is cancelled by its condition, all
// else goes on. Instances of a for_each stop each other only if that fails what the for_each is in.
//
// # How things end
//
// A run in which all nodes have ended is, the first that applies: KILLED, if it was killed; FAILED, if something in it has failed; SUCCEEDED, if
// every end node has succeeded or was skipped; KILLED, if a node of it was killed; and else, with end nodes that were cancelled by their
// conditions, what OnCancelledEnd says. So is an embedded flow, but where nothing in it has failed and its end nodes did not succeed it is KILLED
// also if the run was killed, or if something around it has failed. A node whose job was cancelled by somebody while the run goes on is
// KILLED, and stops nothing else.
//
// An embedded flow whose time is over has failed; what runs in it is killed, and until that is dead it is KILLING. It may have retries left.
//
// A failed embedded flow with retries left stays RUNNING with everything in it ended, and waits for RetryDue; then all of it starts over.
//
// # for_each
//
// A for_each makes its instances when it starts: nodes of their own, numbered after those of the graph. It ends when they have: FAILED if one has,
// KILLED if one was killed or kept from starting. Each of its outputs is a JSON array of what its instances have under that name; without
// instances every output is an empty one. Items that cannot
// be read make it FAILED. When it starts over, instances are used again by their index.
//
// # People
//
// Whatever a person does with a run that has ended lets it go on: what was cancelled is decided on again. Rerun and RetryFlow also
// start over whatever has failed, as RetryFailed does, because a run in which something has failed starts nothing.
//
// Whether it goes on at once is not decided here. A run whose row says PREPARING or QUEUED again takes in what is to start over, and waits
// for Begin as a new one does.
package decide
