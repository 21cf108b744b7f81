-- find_jobs of jobs in one of the states $8, as list_jobs_by_state of package jobs tells them: by primary keys, one job after the other, from the
-- newest. Reads job_lease, which is small, whole. No locks.
SELECT r.id
FROM (
    SELECT j.id, CASE WHEN last.final THEN last.outcome::text
            WHEN s.retry THEN 'retryable' WHEN NOT s.retry THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'pending'
            WHEN l.id IS NOT NULL THEN 'running'
            WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'cancelled'
                AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) THEN 'cancelled'
            ELSE 'available' END AS state
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    LEFT JOIN LATERAL (
        SELECT a.run, a.outcome, a.outcome IN ('completed', 'cancelled', 'discarded') AS final FROM pelton.job_attempt a
        WHERE a.job_id = j.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.run DESC LIMIT 1
    ) last ON true
    LEFT JOIN (
        SELECT u.id, coalesce(u.run, 1) AS run FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run) WHERE u.id >= $1::bigint AND u.id < $2::bigint
    ) l ON l.id = j.id AND l.run = coalesce(last.run, 0) + 1
    WHERE j.id >= $1::bigint AND j.id < $2::bigint
        AND ($3::text[] IS NULL OR j.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
        AND ($5::text[] IS NULL OR j.tags @> $5)
        AND ($6::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $6) > 0)
) r
WHERE r.state = ANY ($8::text[])
ORDER BY r.id DESC LIMIT $7
