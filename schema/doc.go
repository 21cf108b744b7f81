// Package schema owns Pelton's tables: migrations, the version check, partitions and retention.
//
// All DDL lives in migrations/*.sql, written for a schema named pelton, which is replaced by the configured name when a file
// is read, so that several Pelton schemas can live in one database.
//
// # Migrations
//
// [Up] and [Down] run golang-migrate under a lock of their own. Each migration commits together with its version, so there is
// never a dirty schema to repair; one that waits for a table's lock for half a second gives up, lets the others go on, and tries again.
// [Check] refuses a schema that is missing, older or newer than the program, with a [*VersionError] that says what to do.
//
// # Partitions
//
// job, job_attempt, job_log and schedule_tick are partitioned by ids that are times. A [Keeper]'s pass ([Keeper.Maintain])
//
//   - makes partitions ahead. The last one is open-ended, so an insert always finds a place; it is moved behind the new ones
//     while it is empty. If it has rows, because maintenance was away for long, it first gets an end some partitions
//     ahead, proved by a constraint, so that no lock is held while rows are read;
//   - drops those past their retention. What has not ended, or has ended less than the retention ago, is copied out first, and takes the
//     place of what is dropped: job_old and job_attempt_old reach up to the end of the last partition dropped. Whatever changes
//     during the copy is noted by triggers and copied anew under the locks, which are held for that long only;
//   - deletes row by row, in bounded batches, only from the _old partitions and the small tables.
//
// A job changes only by a row that comes or goes in job or job_attempt: being put back, retried or ended all leave one. That is why the
// triggers see all there is to see, and why a job whose last run is completed, cancelled or discarded is over, wherever else its id may
// still be named. Who revives or deletes a job that is over calls [LockPartition] first.
//
// # Failure
//
// DDL waits at most 50 ms for a lock, then gives way, and tries again a few times. A step that never gets its locks is reported as
// [Postponed] with who holds them; so a long SELECT delays retention, never an enqueue. Every step commits or leaves nothing but tables
// named *_next_* and *_gone_*, or empty *_p_*, which the next pass removes. Several keepers are safe: one works, the others return at once.
//
// Between setting the end of an open-ended partition that has rows and putting a new one behind it, ids beyond that end are refused. It
// lies seven partitions ahead (an hour at least), so only maintenance that dies in that very moment and stays away for a week is felt.
//
// Maintenance works as the tables' owner, whoever asks for it: a member of the owner becomes it for each transaction (SET LOCAL ROLE), others
// get [ErrNotOwner].
//
// A transaction in REPEATABLE READ that began before a swap and reads job only after it does not see the jobs that were moved.
package schema
