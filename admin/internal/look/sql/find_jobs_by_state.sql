-- find_jobs of jobs in one of the states $8, as list_jobs_by_state of package jobs tells them. It looks at the jobs in the places that such jobs are
-- in: the $7 newest of each place, and of these the $7 newest. Places: ended runs, those that ended badly by an index of their own; cancels that
-- wait in the line; job_scheduled and job_parked by their keys; and job_lease and job_ready, read whole. If $9, the line is too long for that, and
-- it looks at all jobs instead. Then by primary keys, one job after the other. No locks.
SELECT coalesce(array_agg(l.id ORDER BY l.id DESC) FILTER (WHERE CASE
        WHEN j.id IS NULL THEN NULL
        WHEN last.final THEN last.outcome::text
        WHEN j.retry THEN 'retryable' WHEN NOT j.retry THEN 'scheduled' WHEN j.parked THEN 'pending'
        WHEN leased.id IS NOT NULL THEN 'running'
        WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = l.id AND v.reason = 'cancelled'
            AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) THEN 'cancelled'
        ELSE 'available' END = ANY ($8::text[])), '{}'),
    min(l.id), count(*)
FROM (
    SELECT w.id FROM (
        (SELECT j.id FROM pelton.job j WHERE $9::boolean AND j.id >= $1::bigint AND j.id < $2::bigint ORDER BY j.id DESC LIMIT $7)
        UNION
        (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
            WHERE NOT $9::boolean AND 'completed' = ANY ($8::text[]) AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id DESC LIMIT $7)
        UNION
        (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
            WHERE NOT $9::boolean AND NOT 'completed' = ANY ($8::text[]) AND $8::text[] && '{cancelled,discarded}' AND a.outcome IN ('cancelled', 'discarded')
                AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id DESC LIMIT $7)
        UNION
        (SELECT DISTINCT v.job_id FROM pelton.job_void v
            WHERE NOT $9::boolean AND 'cancelled' = ANY ($8::text[]) AND v.reason = 'cancelled' AND v.job_id >= $1::bigint AND v.job_id < $2::bigint
            ORDER BY v.job_id DESC LIMIT $7)
        UNION
        (SELECT s.job_id FROM pelton.job_scheduled s
            WHERE NOT $9::boolean AND $8::text[] && '{retryable,scheduled}' AND s.job_id >= $1::bigint AND s.job_id < $2::bigint ORDER BY s.job_id DESC LIMIT $7)
        UNION
        (SELECT p.job_id FROM pelton.job_parked p
            WHERE NOT $9::boolean AND 'pending' = ANY ($8::text[]) AND p.job_id >= $1::bigint AND p.job_id < $2::bigint ORDER BY p.job_id DESC LIMIT $7)
        UNION
        (SELECT DISTINCT u.id FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
            WHERE NOT $9::boolean AND 'running' = ANY ($8::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id DESC LIMIT $7)
        UNION
        (SELECT DISTINCT u.id FROM pelton.job_ready r, unnest(r.job_ids) AS u(id)
            WHERE NOT $9::boolean AND 'available' = ANY ($8::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id DESC LIMIT $7)
    ) w ORDER BY w.id DESC LIMIT $7
) l
LEFT JOIN LATERAL (
    SELECT j.id, s.retry, p.job_id IS NOT NULL AS parked
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    WHERE j.id = l.id AND j.id >= $1::bigint AND j.id < $2::bigint
        AND ($3::text[] IS NULL OR j.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
        AND ($5::text[] IS NULL OR j.tags @> $5)
        AND ($6::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $6) > 0)
    LIMIT 1
) j ON true
LEFT JOIN LATERAL (
    SELECT a.run, a.outcome, a.outcome IN ('completed', 'cancelled', 'discarded') AS final FROM pelton.job_attempt a
    WHERE a.job_id = j.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.run DESC LIMIT 1
) last ON true
LEFT JOIN (
    SELECT DISTINCT u.id, coalesce(u.run, 1) AS run FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
    WHERE u.id >= $1::bigint AND u.id < $2::bigint
) leased ON leased.id = j.id AND leased.run = coalesce(last.run, 0) + 1
