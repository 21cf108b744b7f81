-- Copies all attempts of the jobs that copy_jobs copied. Plain reads, no row locks.
INSERT INTO {next_attempt}
SELECT a.* FROM pelton.job_attempt a
WHERE a.job_id >= $1 AND a.job_id < $2 AND a.job_id IN (SELECT n.id FROM {next} n)
