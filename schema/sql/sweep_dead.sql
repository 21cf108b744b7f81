-- Deletes dead letters past their retention, oldest first; one that somebody redrives is left for later.
DELETE FROM pelton.job_dead WHERE job_id IN (
    SELECT d.job_id FROM pelton.job_dead d WHERE d.died_at < clock_timestamp() - $1::interval
    ORDER BY d.died_at LIMIT $2 FOR UPDATE SKIP LOCKED)
