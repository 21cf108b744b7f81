-- Lets one process at a time keep an owner's schedules in step.
-- Locks: an advisory one, until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('pelton.schedule:' || $1, 0))
