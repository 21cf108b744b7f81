-- Reads the earlier runs of jobs, in order. A custom plan each time, so that partitions are pruned. No locks.
SELECT a.job_id, a.run, a.attempt, a.outcome::text, a.started_at, a.ended_at, coalesce(e.name, ''), a.error,
    coalesce(a.trace, ''), a.output, a.metadata, a.due
FROM pelton.job_attempt a LEFT JOIN pelton.executor e ON e.id = a.executor
WHERE a.job_id = ANY ((SELECT $1::bigint[])::bigint[]) AND a.job_id BETWEEN $2 AND $3 ORDER BY a.job_id, a.run
