-- Removes the voids of runs that have ended, and of the runs before them.
DELETE FROM pelton.job_void v USING unnest($1::bigint[], $2::integer[]) AS e(job_id, run)
WHERE v.job_id = e.job_id AND v.run <= e.run
