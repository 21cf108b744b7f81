-- Takes leases off the list, with what they cover. Locks: their rows.
DELETE FROM pelton.job_lease WHERE executor = $1 AND no = ANY ($2::bigint[])
RETURNING no, claimed_at, claimed_at, '', job_ids, runs, attempts
