-- Deletes a range of a run's tail, by primary key; the bounds prune the partitions when the plan is made for their values.
-- Locks: rows that nobody else writes.
DELETE FROM pelton.job_log WHERE job_id = $1 AND run = $2 AND id BETWEEN $3 AND $4
