-- Puts runs into the line: tickets per line and priority of about a 64th of them, at most $6 jobs each. Locks nothing.
INSERT INTO pelton.job_ready (priority, line, job_ids, runs, attempts)
SELECT priority, line, array_agg(job_id ORDER BY n),
    CASE WHEN max(run) > 1 THEN array_agg(run ORDER BY n) END,
    CASE WHEN max(attempts) > 0 THEN array_agg(attempts ORDER BY n) END
FROM (
    SELECT u.*, (row_number() OVER (PARTITION BY u.line, u.priority ORDER BY u.n) - 1)
        / least($6, greatest(1, count(*) OVER (PARTITION BY u.line, u.priority) / 64)) AS ticket
    FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::integer[], $5::smallint[])
        WITH ORDINALITY AS u(line, priority, job_id, run, attempts, n)
) t
GROUP BY line, priority, ticket ORDER BY min(n)
