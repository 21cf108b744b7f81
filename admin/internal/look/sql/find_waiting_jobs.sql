-- find_jobs of jobs that wait or run, all of $8 among these states: from their places, so the rest of the history is not read. By primary keys,
-- but for job_lease, and job_ready if 'available' is among $8, which are read whole. No locks.
SELECT place.id
FROM (
    SELECT w.id FROM (
    SELECT DISTINCT u.id FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
    WHERE 'running' = ANY ($8::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint
        AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = u.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint AND a.run = coalesce(u.run, 1))
    UNION ALL
    SELECT t.id FROM (SELECT unnest(r.job_ids) AS id FROM pelton.job_ready r WHERE 'available' = ANY ($8::text[])) t
    WHERE t.id >= $1::bigint AND t.id < $2::bigint
        AND t.id NOT IN (SELECT v.job_id FROM pelton.job_void v WHERE v.reason = 'cancelled')
    UNION ALL
    SELECT s.job_id FROM pelton.job_scheduled s WHERE s.job_id >= $1::bigint AND s.job_id < $2::bigint
        AND (s.retry AND 'retryable' = ANY ($8::text[]) OR NOT s.retry AND 'scheduled' = ANY ($8::text[]))
    UNION ALL
    SELECT p.job_id FROM pelton.job_parked p WHERE p.job_id >= $1::bigint AND p.job_id < $2::bigint AND 'pending' = ANY ($8::text[])
) w (id) ORDER BY w.id DESC OFFSET 0
) place
CROSS JOIN LATERAL (
    SELECT FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
    WHERE j.id = place.id AND j.id >= $1::bigint AND j.id < $2::bigint
        AND ($3::text[] IS NULL OR j.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
        AND ($5::text[] IS NULL OR j.tags @> $5)
        AND ($6::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $6) > 0)
    LIMIT 1
) found
ORDER BY place.id DESC LIMIT $7
