-- Reads who ended these runs. A custom plan each time. No locks.
SELECT a.job_id, a.run, a.executor, a.outcome::text, a.started_at FROM pelton.job_attempt a
WHERE a.job_id = ANY ((SELECT $1::bigint[])::bigint[]) AND a.job_id BETWEEN $2 AND $3
