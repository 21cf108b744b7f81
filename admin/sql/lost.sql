-- Counts jobs that are in no place. Reads all of job and job_attempt.
SELECT count(*) FROM pelton.lost_jobs()
