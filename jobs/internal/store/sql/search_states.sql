-- search_jobs of jobs in one of the states $13, as list_jobs_by_time tells them: of the jobs {looked}, which is looked_in_places, looked_at_all or looked_at_ids.
-- Then by primary keys, one job after the other, of those that may match. Locks nothing.
SELECT coalesce(array_agg(l.id ORDER BY l.id {order}) FILTER (WHERE CASE
        WHEN j.id IS NULL THEN NULL
        WHEN j.final THEN j.outcome::text
        WHEN j.retry THEN 'retryable' WHEN NOT j.retry THEN 'scheduled' WHEN j.parked THEN 'pending'
        WHEN (j.id, j.run) IN (SELECT u.id, coalesce(u.run, 1) FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
            WHERE u.id >= $1::bigint AND u.id < $2::bigint) THEN 'running'
        WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = l.id AND v.reason = 'cancelled' AND v.run BETWEEN j.run - 1 AND j.run) THEN 'cancelled'
        ELSE 'available' END = ANY ($13::text[])), '{}'),
    {end}(l.id), count(*)
FROM ({looked}) l
LEFT JOIN LATERAL (
    SELECT j.id, s.retry, p.job_id IS NOT NULL AS parked, coalesce(last.run, 0) + 1 AS run, last.outcome, last.outcome IN ('completed', 'cancelled', 'discarded') AS final
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    LEFT JOIN LATERAL (
        SELECT a.run, a.outcome FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.run DESC LIMIT 1
    ) last ON true
    WHERE l.may AND j.id = l.id AND j.id >= $1::bigint AND j.id < $2::bigint
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
