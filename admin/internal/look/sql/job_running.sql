-- The run of a job that goes on: its number, the attempts counted before, since when, where, and the time that it was given later. Reads job_lease, which holds what was taken. No locks.
SELECT coalesce(u.run, 1), coalesce(u.attempts, 0), l.claimed_at, coalesce(x.name, 'executor ' || l.executor), coalesce(x.host, ''),
    (SELECT c.due FROM pelton.job_change c WHERE c.job_id = $1 AND c.due_run = coalesce(u.run, 1))
FROM pelton.job_lease l CROSS JOIN unnest(l.job_ids, l.runs, l.attempts) AS u(id, run, attempts) LEFT JOIN pelton.executor x ON x.id = l.executor
WHERE l.job_ids @> ARRAY[$1::bigint] AND u.id = $1
    AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = $1 AND a.run = coalesce(u.run, 1))
LIMIT 1
