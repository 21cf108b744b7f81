-- Tells whether a run of a job has ended, or the job is gone. By primary keys. No locks.
SELECT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = $1 AND a.run = $2) OR NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = $1)
