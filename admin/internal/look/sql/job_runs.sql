-- Runs of a job before run $2, the newest first, $3 at most; texts are cut off after $4 characters. By primary keys. No locks.
SELECT * FROM (
    SELECT a.run, a.attempt, a.outcome::text, p.ended_at, CASE WHEN c.due_run = a.run THEN c.due ELSE p.due END, a.started_at, a.ended_at, a.due, coalesce(left(a.error, $4), ''), coalesce(left(a.trace, $4), ''),
        coalesce(left(a.output::text, $4), ''), coalesce(x.name, CASE WHEN a.executor IS NOT NULL THEN 'executor ' || a.executor END, ''), coalesce(x.host, '')
    FROM pelton.job_attempt a
    LEFT JOIN pelton.job_attempt p ON p.job_id = a.job_id AND p.job_id = $1 AND p.run = a.run - 1
    LEFT JOIN pelton.job_change c ON c.job_id = $1
    LEFT JOIN pelton.executor x ON x.id = a.executor
    WHERE a.job_id = $1 AND a.run < $2
    ORDER BY a.run DESC LIMIT $3
) ended
