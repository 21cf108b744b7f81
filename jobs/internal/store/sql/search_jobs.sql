-- Looks at $12 jobs with $1 <= id < $2, and of the ids $11, the first in the order of ids: the ids of those that match, in that order, the last id looked at
-- (NULL: none), and how many were looked at. NULL parameters filter nothing; $9 is a part of the args' text, $8 and $10 are contained in args and metadata.
-- Locks nothing: by the primary key, and $12 bounds what is read. {order} and {end}, the last of that order, are put in by the caller.
SELECT coalesce(array_agg(l.id ORDER BY l.id {order}) FILTER (WHERE
        ($3::text[] IS NULL OR l.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, l.queue) = ANY ($4))
        AND ($5::smallint[] IS NULL OR coalesce(c.priority, l.priority) = ANY ($5))
        AND ($6::text[] IS NULL OR l.tags && $6)
        AND ($7::text[] IS NULL OR l.tags @> $7)
        AND ($8::text IS NULL OR pelton.json_contains(coalesce(c.args, l.args), $8::jsonb))
        AND ($9::text IS NULL OR strpos(coalesce(c.args, l.args)::text, $9) > 0)
        AND ($10::text IS NULL OR (
            SELECT jsonb_object_agg(f.key, f.value ORDER BY m.at, m.run)
            FROM (SELECT l.metadata, '-infinity'::timestamptz AS at, 0 AS run
                UNION ALL
                SELECT a.metadata, a.ended_at, a.run FROM pelton.job_attempt a WHERE a.job_id = l.id AND a.job_id >= $1::bigint AND a.job_id < $2::bigint
                UNION ALL SELECT c.metadata, c.changed_at, 2147483647) m, jsonb_each(m.metadata) f) @> $10::jsonb)), '{}'),
    {end}(l.id), count(*)
FROM (
    SELECT j.id, j.kind, j.queue, j.priority, j.tags, j.args, j.metadata FROM pelton.job j
    WHERE j.id >= $1::bigint AND j.id < $2::bigint AND ($11::bigint[] IS NULL OR j.id = ANY ((SELECT $11)::bigint[])) ORDER BY j.id {order} LIMIT $12
) l
LEFT JOIN LATERAL (SELECT c.queue, c.priority, c.args, c.metadata, c.changed_at FROM pelton.job_change c WHERE c.job_id = l.id LIMIT 1) c ON true
