-- Reads how the last $5 runs before these ($1 jobs, $4 runs) ended, newest first. A custom plan each time, so that partitions are
-- pruned; by the keys of the runs, however many a job has had. No locks.
SELECT a.job_id, a.run, a.outcome::text
FROM unnest((SELECT $1::bigint[])::bigint[], (SELECT $4::integer[])::integer[]) AS u(id, run)
CROSS JOIN LATERAL (SELECT b.* FROM pelton.job_attempt b
    WHERE b.job_id = u.id AND b.job_id BETWEEN $2 AND $3 AND b.run < u.run AND b.run >= u.run - $5::integer OFFSET 0) a
ORDER BY a.job_id, a.run DESC
