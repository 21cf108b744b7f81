-- How many jobs wait or run, by queue and state. Counts tickets, not jobs: a cancelled job whose ticket has not been met yet is
-- still counted as available. Reads the moving tables whole, and of job only those that run, are put off or parked.
SELECT w.queue, w.state, sum(w.n)::bigint
FROM (
    SELECT split_part(r.line, '/', 1) AS queue, 'available' AS state, sum(r.n) AS n
    FROM (SELECT r.line, sum(cardinality(r.job_ids)) AS n FROM pelton.job_ready r GROUP BY r.line) r GROUP BY 1
    UNION ALL
    SELECT coalesce(c.queue, j.queue), p.state, count(*)
    FROM (
        SELECT u.id, 'running' AS state FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
        WHERE NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = u.id AND a.run = coalesce(u.run, 1))
        UNION ALL SELECT s.job_id, CASE WHEN s.retry THEN 'retryable' ELSE 'scheduled' END FROM pelton.job_scheduled s
        UNION ALL SELECT p.job_id, 'pending' FROM pelton.job_parked p
    ) p
    JOIN pelton.job j ON j.id = p.id LEFT JOIN pelton.job_change c ON c.job_id = p.id
    GROUP BY 1, 2
) w
GROUP BY 1, 2 ORDER BY 1, 2
