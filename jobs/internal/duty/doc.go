// Package duty does what must be done by somebody, whoever works the jobs: it moves due jobs into the line, puts back the runs
// of dead executors, settles low-water marks, sweeps what was left behind, and keeps the partitions.
//
// # What it promises
//
// Every duty may run in any number of processes at once; none needs a leader to be right. The key of job_attempt decides who
// ended a run, row locks with SKIP LOCKED decide who moves a job, a chain of rows decides what is settled. Advisory locks
// only spare work.
//
// # How it works
//
// Each duty is a loop: a step that does a bounded piece of work and says when to come again. Idle steps are single small
// statements outside a transaction.
//
//   - Mover: due jobs leave job_scheduled and enter the line in one transaction per batch. A job without its row ends as
//     discarded, never silently.
//   - Reaper: watches heartbeat counters on its own monotonic clock. Executors whose counter stood still for the lease time over
//     an unbroken series of looks are declared dead, under their row's lock; their leased runs are recorded as lost, and exactly
//     those that this recorded go back, as tickets of one.
//   - Marker: see internal/floor.
//   - Sweeper: unique keys of jobs that have ended, voids that hold for nothing any more, changes of jobs that are gone.
//   - Keeper: partitions and retention, see schema.
//
// # On failure
//
// A failed step is repeated with a growing pause, and logged once until it works again. A look of the reaper that failed, or
// that came too late, starts the observation anew: after a database outage nobody is dead.
package duty
