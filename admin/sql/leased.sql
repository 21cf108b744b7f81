-- Runs that executors have taken, some of which have ended; at most $1, and how many there are. Reads all of job_lease.
SELECT u.id, coalesce(u.run, 1), count(*) OVER () FROM pelton.job_lease l CROSS JOIN LATERAL unnest(l.job_ids, l.runs) AS u(id, run)
LIMIT $1
