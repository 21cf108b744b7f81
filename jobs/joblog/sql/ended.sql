-- Tells whether a run of a job has ended, or will not be: the job has ended before, or is gone. By primary keys. No locks.
SELECT coalesce((
    SELECT a.run >= $2 OR a.outcome IN ('completed', 'cancelled', 'discarded') FROM pelton.job_attempt a WHERE a.job_id = $1 ORDER BY a.run DESC LIMIT 1),
    NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = $1))
