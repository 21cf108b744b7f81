-- find_jobs of jobs that run, are put off or are pending, all of $8 among these states: from their places, so the rest of the history is not
-- read. By primary keys, but for job_lease, which is read whole. No locks.
SELECT j.id
FROM (
    SELECT DISTINCT u.id FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
    WHERE 'running' = ANY ($8::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint
        AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = u.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint AND a.run = coalesce(u.run, 1))
    UNION ALL
    SELECT s.job_id FROM pelton.job_scheduled s WHERE s.job_id >= $1::bigint AND s.job_id < $2::bigint
        AND (s.retry AND 'retryable' = ANY ($8::text[]) OR NOT s.retry AND 'scheduled' = ANY ($8::text[]))
    UNION ALL
    SELECT p.job_id FROM pelton.job_parked p WHERE p.job_id >= $1::bigint AND p.job_id < $2::bigint AND 'pending' = ANY ($8::text[])
) place (id)
JOIN pelton.job j ON j.id = place.id AND j.id >= $1::bigint AND j.id < $2::bigint
LEFT JOIN pelton.job_change c ON c.job_id = j.id
WHERE ($3::text[] IS NULL OR j.kind = ANY ($3))
    AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
    AND ($5::text[] IS NULL OR j.tags @> $5)
    AND ($6::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $6) > 0)
ORDER BY j.id DESC LIMIT $7
