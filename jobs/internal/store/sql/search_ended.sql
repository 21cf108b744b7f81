-- search_jobs of jobs in the states $9, discarded or cancelled or both: it looks at the runs that ended so, by an index of their own, and at the
-- cancels that wait in the line; then by primary keys, one job after the other. Locks nothing.
SELECT coalesce(array_agg(l.id ORDER BY l.id {order}) FILTER (WHERE j.id IS NOT NULL AND CASE
        WHEN last.final THEN last.outcome::text
        WHEN j.placed OR EXISTS (SELECT FROM pelton.job_lease e, unnest(e.job_ids, e.runs) AS u(id, run)
            WHERE e.job_ids @> ARRAY[l.id] AND u.id = l.id AND coalesce(u.run, 1) = coalesce(last.run, 0) + 1) THEN NULL
        WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = l.id AND v.reason = 'cancelled'
            AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) THEN 'cancelled' END = ANY ($9::text[])), '{}'),
    {end}(l.id), count(*)
FROM (
    SELECT w.id FROM (
        (SELECT DISTINCT a.job_id AS id FROM pelton.job_attempt a WHERE a.outcome IN ('cancelled', 'discarded')
            AND ($1::bigint IS NULL OR a.job_id >= $1) AND ($2::bigint IS NULL OR a.job_id < $2) ORDER BY a.job_id {order} LIMIT $10)
        UNION
        (SELECT DISTINCT v.job_id FROM pelton.job_void v WHERE 'cancelled' = ANY ($9::text[]) AND v.reason = 'cancelled'
            AND ($1::bigint IS NULL OR v.job_id >= $1) AND ($2::bigint IS NULL OR v.job_id < $2) ORDER BY v.job_id {order} LIMIT $10)
    ) w ORDER BY w.id {order} LIMIT $10
) l
LEFT JOIN LATERAL (
    SELECT j.id, s.job_id IS NOT NULL OR p.job_id IS NOT NULL AS placed
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    WHERE j.id = l.id AND ($1::bigint IS NULL OR j.id >= $1) AND ($2::bigint IS NULL OR j.id < $2)
        AND ($3::text[] IS NULL OR j.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
        AND ($5::smallint[] IS NULL OR coalesce(c.priority, j.priority) = ANY ($5))
        AND ($6::text[] IS NULL OR j.tags && $6)
        AND ($7::text[] IS NULL OR j.tags @> $7)
        AND ($8::text IS NULL OR pelton.json_contains(coalesce(c.args, j.args), $8::jsonb))
    LIMIT 1
) j ON true
LEFT JOIN LATERAL (
    SELECT a.run, a.outcome, a.outcome IN ('completed', 'cancelled', 'discarded') AS final FROM pelton.job_attempt a
    WHERE a.job_id = j.id AND ($1::bigint IS NULL OR a.job_id >= $1) AND ($2::bigint IS NULL OR a.job_id < $2) ORDER BY a.run DESC LIMIT 1
) last ON true
