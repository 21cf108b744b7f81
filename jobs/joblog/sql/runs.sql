-- Sizes of what is stored of each stream of runs of the jobs $1, of each job's $4 newest that have a log and a smaller number than $3: chunks, bytes stored,
-- bytes printed. $2 are ids of logs, in step, before which none of a job's is, $5 is the least of them, and $6 is above them all: other partitions are left out. Each of
-- these runs is found by the primary key. No locks.
SELECT u.job, s.* FROM unnest($1::bigint[], $2::bigint[]) AS u(job, low) CROSS JOIN LATERAL (
    WITH RECURSIVE runs AS (
        SELECT max(l.run) AS run, 1::bigint AS n FROM pelton.job_log l
        WHERE l.job_id = u.job AND l.run < $3::bigint AND l.id > u.low AND l.id > $5 AND l.id < $6
        UNION ALL
        SELECT (SELECT max(l.run) FROM pelton.job_log l
            WHERE l.job_id = u.job AND l.run < r.run AND l.id > u.low AND l.id > $5 AND l.id < $6), r.n + 1
        FROM runs r WHERE r.run IS NOT NULL AND r.n < $4
    )
    SELECT r.run, c.stream, c.chunks, c.stored, c.printed, c.first, c.last FROM runs r CROSS JOIN LATERAL (
        SELECT l.stream::text, count(*) AS chunks, sum(octet_length(l.data))::bigint AS stored, max(l.pos + octet_length(l.data))::bigint AS printed,
            min(l.at) AS first, max(l.at) AS last, min(l.id) AS id
        FROM pelton.job_log l WHERE l.job_id = u.job AND l.run = r.run AND l.id > u.low AND l.id > $5 AND l.id < $6
        GROUP BY l.stream
    ) c ORDER BY r.run, c.id
) s
