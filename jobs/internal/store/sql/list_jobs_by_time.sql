-- Ids of jobs by what was asked and where they are; NULL parameters filter nothing. Locks nothing. {key}, {order} and {sign} are
-- put in by the caller. Ids prune partitions of job and job_attempt: $1 <= id < $2. If $12 is set, only jobs that run or are put
-- off can match, and these are read from their places, which are small; without it, from job.
SELECT r.id
FROM (
    SELECT j.id, CASE WHEN last.final THEN last.outcome::text
            WHEN s.retry THEN 'retryable' WHEN NOT s.retry THEN 'scheduled' WHEN p.job_id IS NOT NULL THEN 'pending'
            WHEN l.id IS NOT NULL THEN 'running'
            WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'cancelled'
                AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1) THEN 'cancelled'
            ELSE 'available' END AS state,
        coalesce(s.due, CASE WHEN c.due_run = coalesce(last.run, 0) + CASE WHEN last.final THEN 0 ELSE 1 END THEN c.due END,
            CASE WHEN last.outcome = 'retried' THEN last.ended_at ELSE last.due END, c.due, j.scheduled_at, j.created_at)
            AS scheduled_at,
        CASE WHEN last.final THEN last.ended_at
            WHEN s.job_id IS NULL AND p.job_id IS NULL AND l.id IS NULL THEN
                (SELECT max(v.at) FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'cancelled'
                    AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1)
            END AS finalized_at,
        coalesce(l.claimed_at, last.started_at) AS attempted_at
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    LEFT JOIN LATERAL (
        SELECT a.run, a.outcome, a.ended_at, a.due, a.outcome IN ('completed', 'cancelled', 'discarded') AS final,
            max(a.started_at) OVER () AS started_at
        FROM pelton.job_attempt a
        WHERE a.job_id = j.id AND ($1::bigint IS NULL OR a.job_id >= $1) AND ($2::bigint IS NULL OR a.job_id < $2)
        ORDER BY a.run DESC LIMIT 1
    ) last ON true
    LEFT JOIN (
        SELECT u.id, coalesce(u.run, 1) AS run, l.claimed_at FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
    ) l ON l.id = j.id AND l.run = coalesce(last.run, 0) + 1
    WHERE ($1::bigint IS NULL OR j.id >= $1) AND ($2::bigint IS NULL OR j.id < $2)
        AND ($3::bigint[] IS NULL OR j.id = ANY ($3))
        AND ($4::text[] IS NULL OR j.kind = ANY ($4))
        AND ($5::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($5))
        AND ($6::smallint[] IS NULL OR coalesce(c.priority, j.priority) = ANY ($6))
        AND ($7::text[] IS NULL OR j.tags && $7)
        AND ($8::text[] IS NULL OR j.tags @> $8)
        AND ($9::text IS NULL OR pelton.json_contains(coalesce(c.args, j.args), $9::jsonb))
        AND ($10::text IS NULL OR (
            SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
            FROM (SELECT j.metadata, '-infinity'::timestamptz AS at, 0 AS run
                UNION ALL
                SELECT a.metadata, a.ended_at, a.run FROM pelton.job_attempt a
                WHERE a.job_id = j.id AND ($1::bigint IS NULL OR a.job_id >= $1) AND ($2::bigint IS NULL OR a.job_id < $2)
                UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f) @> $10::jsonb)
        AND ($12::text[] IS NULL OR j.id = ANY (ARRAY(
            SELECT unnest(l.job_ids) FROM pelton.job_lease l WHERE 'running' = ANY ($12)
            UNION ALL
            SELECT s.job_id FROM pelton.job_scheduled s
            WHERE s.retry AND 'retryable' = ANY ($12) OR NOT s.retry AND 'scheduled' = ANY ($12)
            UNION ALL
            SELECT p.job_id FROM pelton.job_parked p WHERE 'pending' = ANY ($12))))
) r
WHERE ($11::text[] IS NULL OR r.state = ANY ($11))
    AND ($13::bigint IS NULL OR ({key}, r.id) {sign} ($14::timestamptz, $13))
ORDER BY {key} {order}, r.id {order}
LIMIT $15
