-- Reads the last $5 runs before these ($1 jobs, $4 runs) in order, and as many that failed of those before them, without what
-- they left. A custom plan each time, so that partitions are pruned; by keys, however many runs a job has had. No locks.
SELECT a.job_id, a.run, a.attempt, a.outcome::text, a.started_at, a.ended_at, coalesce(e.name, ''), a.error,
    coalesce(a.trace, ''), a.output, a.metadata, a.carried, a.due
FROM unnest((SELECT $1::bigint[])::bigint[], (SELECT $4::integer[])::integer[]) AS u(id, run)
CROSS JOIN LATERAL (
    (SELECT b.job_id, b.run, b.attempt, b.outcome, b.started_at, b.ended_at, b.executor, b.error, b.trace, b.output, b.metadata,
        b.carried, b.due
    FROM pelton.job_attempt b
    WHERE b.job_id = u.id AND b.job_id BETWEEN $2 AND $3 AND b.run < u.run AND b.run >= u.run - $5::integer OFFSET 0)
    UNION ALL
    (SELECT f.job_id, f.run, f.attempt, f.outcome, f.started_at, f.ended_at, f.executor, f.error, f.trace, NULL, NULL, NULL, f.due
    FROM pelton.job_attempt f
    WHERE f.job_id = u.id AND f.job_id BETWEEN $2 AND $3 AND f.run < u.run - $5::integer AND f.error IS NOT NULL
    ORDER BY f.run DESC LIMIT $5::integer)
) a
LEFT JOIN pelton.executor e ON e.id = a.executor
ORDER BY a.job_id, a.run
