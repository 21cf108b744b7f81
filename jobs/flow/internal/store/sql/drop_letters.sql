-- Removes the dead letters of the jobs $1, by the primary key. Locks: those rows.
DELETE FROM pelton.job_dead d WHERE d.job_id = ANY ($1)
