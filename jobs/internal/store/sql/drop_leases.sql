-- Deletes leases of an executor whose runs have all ended. Locks: their rows.
DELETE FROM pelton.job_lease WHERE executor = $1 AND no = ANY ($2::bigint[])
