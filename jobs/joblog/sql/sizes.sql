-- Sizes of what is stored of each stream of runs of a job with smaller numbers than $3, of the $4 newest that have a log: chunks, bytes stored, bytes
-- printed. Its chunks have ids between $2 and $5. Each of these runs is found by the primary key. No locks.
WITH RECURSIVE runs AS (
    SELECT max(l.run) AS run, 1 AS n FROM pelton.job_log l
    WHERE l.job_id = $1 AND l.run < $3::bigint AND l.id > $2 AND l.id < $5
    UNION ALL
    SELECT (SELECT max(l.run) FROM pelton.job_log l
        WHERE l.job_id = $1 AND l.run < r.run AND l.id > $2 AND l.id < $5), r.n + 1
    FROM runs r WHERE r.run IS NOT NULL AND r.n < $4
)
SELECT r.run, s.stream, s.chunks, s.stored, s.printed, s.first, s.last FROM runs r CROSS JOIN LATERAL (
    SELECT l.stream::text, count(*) AS chunks, sum(octet_length(l.data))::bigint AS stored, max(l.pos + octet_length(l.data))::bigint AS printed,
        min(l.at) AS first, max(l.at) AS last, min(l.id) AS id
    FROM pelton.job_log l WHERE l.job_id = $1 AND l.run = r.run AND l.id > $2 AND l.id < $5
    GROUP BY l.stream
) s ORDER BY r.run DESC, s.id
