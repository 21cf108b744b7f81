-- Reads what runs more than $5 before these ($1 jobs, $4 runs) left in the metadata, in order. A custom plan each time, so that
-- partitions are pruned. Reads all of a job's history, so for those alone of which nothing was carried on. No locks.
SELECT a.job_id, a.run, a.output, a.metadata, a.carried
FROM unnest((SELECT $1::bigint[])::bigint[], (SELECT $4::integer[])::integer[]) AS u(id, run)
CROSS JOIN LATERAL (SELECT b.* FROM pelton.job_attempt b
    WHERE b.job_id = u.id AND b.job_id BETWEEN $2 AND $3 AND b.run < u.run - $5::integer
        AND (b.output IS NOT NULL OR b.metadata IS NOT NULL OR b.carried IS NOT NULL) OFFSET 0) a
ORDER BY a.job_id, a.run
