-- How long the oldest job of each queue has been in the line, where that is more than $3. $1 queues, empty: all but queue $2. Reads all of
-- job_ready once, as metrics do. Locks nothing but ACCESS SHARE.
WITH lines AS MATERIALIZED (
    SELECT r.line, sum(cardinality(r.job_ids)) AS jobs, min(r.entered_at) AS oldest FROM pelton.job_ready r GROUP BY r.line
), queues AS (
    SELECT split_part(l.line, '/', 1) AS name, sum(l.jobs) AS jobs, min(l.oldest) AS oldest FROM lines l GROUP BY 1
)
SELECT q.name, extract(epoch FROM clock_timestamp() - q.oldest)::float8, q.jobs || CASE WHEN q.jobs = 1 THEN ' ready job' ELSE ' ready jobs' END
    || CASE WHEN EXISTS (SELECT FROM pelton.queue p WHERE p.name IN (q.name, '*') AND p.paused_at IS NOT NULL) THEN ' (the queue is paused)' ELSE '' END
FROM queues q
WHERE CASE WHEN cardinality($1::text[]) > 0 THEN q.name = ANY ($1::text[]) ELSE q.name <> $2 END
    AND clock_timestamp() - q.oldest > $3::interval
ORDER BY q.oldest, q.name LIMIT $4
