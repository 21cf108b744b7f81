-- search_jobs of jobs in one of the states $13, as list_jobs_by_time tells them. It looks at the jobs in the places that such jobs are in: the first $12 of each
-- place, and of these the first $12. Places: ended runs, those that ended badly by an index of their own; cancels that wait in the line; job_scheduled
-- and job_parked by their keys; and job_lease and job_ready, read whole. If $14, it looks at all jobs instead, since the line is too long for that, or at the ids $11, if they are given.
-- Then by primary keys, one job after the other. Locks nothing.
SELECT coalesce(array_agg(l.id ORDER BY l.id {order}) FILTER (WHERE CASE
        WHEN j.id IS NULL THEN NULL
        WHEN last.final THEN last.outcome::text
        WHEN j.retry THEN 'retryable' WHEN NOT j.retry THEN 'scheduled' WHEN j.parked THEN 'pending'
        WHEN leased.id IS NOT NULL THEN 'running'
        WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = l.id AND v.reason = 'cancelled'
            AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) THEN 'cancelled'
        ELSE 'available' END = ANY ($13::text[])), '{}'),
    {end}(l.id), count(*)
FROM (
    SELECT w.id FROM (
        (SELECT j.id FROM pelton.job j WHERE $14::boolean AND $11::bigint[] IS NULL AND j.id >= $1::bigint AND j.id < $2::bigint ORDER BY j.id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT u.id FROM unnest($11::bigint[]) AS u(id) WHERE u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
            WHERE NOT $14::boolean AND 'completed' = ANY ($13::text[]) AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT a.job_id FROM pelton.job_attempt a
            WHERE NOT $14::boolean AND NOT 'completed' = ANY ($13::text[]) AND $13::text[] && '{cancelled,discarded}' AND a.outcome IN ('cancelled', 'discarded')
                AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT v.job_id FROM pelton.job_void v
            WHERE NOT $14::boolean AND 'cancelled' = ANY ($13::text[]) AND v.reason = 'cancelled' AND v.job_id >= $1::bigint AND v.job_id < $2::bigint
            ORDER BY v.job_id {order} LIMIT $12)
        UNION
        (SELECT s.job_id FROM pelton.job_scheduled s
            WHERE NOT $14::boolean AND $13::text[] && '{retryable,scheduled}' AND s.job_id >= $1::bigint AND s.job_id < $2::bigint ORDER BY s.job_id {order} LIMIT $12)
        UNION
        (SELECT p.job_id FROM pelton.job_parked p
            WHERE NOT $14::boolean AND 'pending' = ANY ($13::text[]) AND p.job_id >= $1::bigint AND p.job_id < $2::bigint ORDER BY p.job_id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT u.id FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
            WHERE NOT $14::boolean AND 'running' = ANY ($13::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12)
        UNION
        (SELECT DISTINCT u.id FROM pelton.job_ready r, unnest(r.job_ids) AS u(id)
            WHERE NOT $14::boolean AND 'available' = ANY ($13::text[]) AND u.id >= $1::bigint AND u.id < $2::bigint ORDER BY u.id {order} LIMIT $12)
    ) w ORDER BY w.id {order} LIMIT $12
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
        AND ($5::smallint[] IS NULL OR coalesce(c.priority, j.priority) = ANY ($5))
        AND ($6::text[] IS NULL OR j.tags && $6)
        AND ($7::text[] IS NULL OR j.tags @> $7)
        AND ($8::text IS NULL OR pelton.json_contains(coalesce(c.args, j.args), $8::jsonb))
        AND ($9::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $9) > 0)
        AND ($10::text IS NULL OR (
            SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
            FROM (SELECT j.metadata, '-infinity'::timestamptz AS at, 0 AS run
                UNION ALL
                SELECT a.metadata, a.ended_at, a.run FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint
                UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f) @> $10::jsonb)
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
