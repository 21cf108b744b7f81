// Package periodic starts jobs and flows at times: schedules are rows, fired by any number of schedulers.
//
// # What it promises
//
// Every tick of a schedule either starts exactly one run, or has a row that says why it did not. Whatever is killed, a tick is neither lost nor
// run twice. The database's clock decides; those of the hosts do not matter. A schedule whose target is refused, or held by somebody else's
// open transaction, holds up no other.
//
// # How it works
//
// A [Schedule] is stored as a row, with a second, narrow one that says where it is. A [Client] that is started sleeps until the least of
// these is due, or until a hint, locks up to a thousand rows, decides what becomes of their ticks (internal/plan, a pure function), and in the same
// transaction enqueues the jobs, starts the runs of flows, writes a row for each tick, and the new place of each schedule. Which times
// an expression names is for internal/expr; what becomes of times that clocks leave out or show twice, for internal/tick.
//
// # Failure
//
// A transaction that fails has done nothing and is repeated, with fewer schedules at once until the one at fault is alone; that one is put
// off, for longer each time. A refusal (a job that cannot be stored, a flow that does not exist) is no failure: the tick is
// written down as failed, with the reason, and the schedule goes on.
package periodic
