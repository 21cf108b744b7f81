-- Reads how the runs of jobs ended, newest first. A custom plan each time, so that partitions are pruned. No locks.
SELECT a.job_id, a.run, a.outcome::text FROM pelton.job_attempt a WHERE a.job_id = ANY ((SELECT $1::bigint[])::bigint[]) AND a.job_id BETWEEN $2 AND $3 ORDER BY a.job_id, a.run DESC
