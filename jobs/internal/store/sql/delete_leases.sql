-- Deletes used-up leases, after what they covered was recorded. Locks: their rows, which only the reaper of a dead executor
-- would want too.
DELETE FROM pelton.job_lease WHERE executor = $1 AND no = ANY ($2::bigint[])
