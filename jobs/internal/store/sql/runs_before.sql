-- Runs of a job with smaller numbers than $2, ended or going on, the newest first, at most $3. By primary keys; a custom plan each time, so that
-- partitions prune. No locks.
SELECT r.run, r.attempt, r.outcome, r.started_at, r.ended_at, r.next_due, r.error, r.trace, r.output, r.executor, r.name, r.host FROM (
    (SELECT a.run, a.attempt, a.outcome::text AS outcome, a.started_at, a.ended_at, a.due AS next_due, coalesce(a.error, '') AS error,
        coalesce(a.trace, '') AS trace, a.output::text AS output, coalesce(a.executor, 0) AS executor, coalesce(x.name, '') AS name, coalesce(x.host, '') AS host
    FROM pelton.job_attempt a LEFT JOIN pelton.executor x ON x.id = a.executor
    WHERE a.job_id = $1 AND a.run < $2::bigint ORDER BY a.run DESC LIMIT $3)
    UNION ALL
    SELECT g.run, g.attempt, 'running', g.since, NULL, NULL, '', '', NULL, coalesce(g.executor, 0), coalesce(x.name, ''), coalesce(x.host, '')
    FROM pelton.job_state g LEFT JOIN pelton.executor x ON x.id = g.executor WHERE g.job_id = $1 AND g.state = 'running' AND g.run < $2
) r ORDER BY r.run DESC LIMIT $3
