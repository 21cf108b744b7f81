-- Reads leases of an executor from a number on. No locks.
SELECT no, claimed_at, job_ids, runs, attempts FROM pelton.job_lease WHERE executor = $1 AND no > $2 ORDER BY no LIMIT $3
