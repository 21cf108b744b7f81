-- Looks at $13 ends of jobs with $1 <= time of the end < $2, the first in the order of (time, id) after ($3, $4): the ids of those whose jobs match and stand in one of
-- the states $12, in that order; the time and the id of the last one looked at (NULL: none); and how many were looked at. Ended runs by their BRIN
-- index of ended_at, or, without completed ones, by the index of what ended badly; cancels that wait in the line from job_void, which is small. NULL parameters filter nothing, as in search_jobs. Locks nothing.
SELECT coalesce(array_agg(l.id ORDER BY l.at {order}, l.id {order}) FILTER (WHERE CASE
        WHEN j.id IS NULL THEN false
        WHEN last.final THEN last.run = l.run AND NOT l.waits AND last.outcome::text = ANY ($12::text[])
        ELSE l.waits AND 'cancelled' = ANY ($12::text[]) AND NOT j.placed AND leased.id IS NULL AND l.run = (
            SELECT v.run FROM pelton.job_void v WHERE v.job_id = l.id AND v.reason = 'cancelled' AND v.run BETWEEN coalesce(last.run, 0) AND coalesce(last.run, 0) + 1
            ORDER BY v.at DESC, v.run DESC LIMIT 1)
        END), '{}'),
    (array_agg(l.at ORDER BY l.at {order}, l.id {order}))[count(*)], (array_agg(l.id ORDER BY l.at {order}, l.id {order}))[count(*)], count(*)
FROM (
    SELECT w.id, w.at, w.run, w.waits FROM (
        SELECT a.job_id AS id, a.ended_at AS at, a.run, false AS waits FROM pelton.job_attempt a
        WHERE 'completed' = ANY ($12::text[]) AND a.ended_at >= $1::timestamptz AND a.ended_at < $2::timestamptz AND a.outcome::text = ANY ($12::text[])
        UNION ALL
        SELECT a.job_id, a.ended_at, a.run, false FROM pelton.job_attempt a
        WHERE NOT 'completed' = ANY ($12::text[]) AND a.ended_at >= $1::timestamptz AND a.ended_at < $2::timestamptz AND a.outcome IN ('cancelled', 'discarded')
            AND a.outcome::text = ANY ($12::text[])
        UNION ALL
        SELECT v.job_id, v.at, v.run, true FROM pelton.job_void v
        WHERE v.at >= $1::timestamptz AND v.at < $2::timestamptz AND v.reason = 'cancelled' AND 'cancelled' = ANY ($12::text[])
    ) w WHERE (w.at, w.id) {sign} ($3::timestamptz, $4::bigint) ORDER BY w.at {order}, w.id {order} LIMIT $13
) l
LEFT JOIN LATERAL (
    SELECT j.id, s.job_id IS NOT NULL OR p.job_id IS NOT NULL AS placed
    FROM pelton.job j
    LEFT JOIN pelton.job_change c ON c.job_id = j.id
    LEFT JOIN pelton.job_scheduled s ON s.job_id = j.id
    LEFT JOIN pelton.job_parked p ON p.job_id = j.id
    WHERE j.id = l.id AND j.id >= $14::bigint AND j.id < $15::bigint
        AND ($5::text[] IS NULL OR j.kind = ANY ($5))
        AND ($6::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($6))
        AND ($7::smallint[] IS NULL OR coalesce(c.priority, j.priority) = ANY ($7))
        AND ($8::text[] IS NULL OR j.tags && $8)
        AND ($9::text[] IS NULL OR j.tags @> $9)
        AND ($10::text IS NULL OR pelton.json_contains(coalesce(c.args, j.args), $10::jsonb))
        AND ($11::text IS NULL OR (
            SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
            FROM (SELECT j.metadata, '-infinity'::timestamptz AS at, 0 AS run
                UNION ALL SELECT a.metadata, a.ended_at, a.run FROM pelton.job_attempt a WHERE a.job_id = j.id
                UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f) @> $11::jsonb)
    LIMIT 1
) j ON true
LEFT JOIN LATERAL (
    SELECT a.run, a.outcome, a.outcome IN ('completed', 'cancelled', 'discarded') AS final FROM pelton.job_attempt a
    WHERE a.job_id = j.id ORDER BY a.run DESC LIMIT 1
) last ON true
LEFT JOIN (
    SELECT DISTINCT u.id, coalesce(u.run, 1) AS run FROM pelton.job_lease e, unnest(e.job_ids, e.runs) AS u(id, run) WHERE 'cancelled' = ANY ($12::text[])
) leased ON leased.id = j.id AND leased.run = coalesce(last.run, 0) + 1
