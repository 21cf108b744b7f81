-- What executor $1 has taken and not ended, what it has had for longest first; at most $2. Its leases are few; jobs and attempts are found by their keys.
SELECT l.job_id, l.run, j.kind, coalesce(c.queue, j.queue), l.claimed_at
FROM (
    SELECT x.claimed_at, u.job_id, coalesce(x.runs[u.n], 1) AS run
    FROM pelton.job_lease x, unnest(x.job_ids) WITH ORDINALITY AS u(job_id, n) WHERE x.executor = $1
) l
JOIN pelton.job j ON j.id = l.job_id
LEFT JOIN pelton.job_change c ON c.job_id = l.job_id
WHERE NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = l.job_id AND a.run = l.run)
ORDER BY l.claimed_at, l.job_id LIMIT $2
