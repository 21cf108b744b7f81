-- Deletes what is left about jobs below id $1 that are gone.
DELETE FROM pelton.job_change WHERE (job_id) IN (
    SELECT c.job_id FROM pelton.job_change c
    WHERE c.job_id < $1 AND NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = c.job_id AND j.id < $1)
    LIMIT $2 FOR UPDATE SKIP LOCKED)
