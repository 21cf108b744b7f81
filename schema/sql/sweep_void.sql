-- Deletes what is left about jobs below id $1 that are gone.
DELETE FROM pelton.job_void WHERE (job_id, run) IN (
    SELECT c.job_id, c.run FROM pelton.job_void c
    WHERE c.job_id < $1 AND NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = c.job_id AND j.id < $1)
    LIMIT $2 FOR UPDATE SKIP LOCKED)
