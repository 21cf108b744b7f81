-- Looks at $9 jobs with $1 <= id < $2, the first in the order of ids: the ids of those that match, in that order, the last id looked at (NULL: none),
-- and how many were looked at. NULL parameters filter nothing. Locks nothing: by the primary key, and $9 bounds what is read. {order} and {end}, the
-- last of that order, are put in by the caller.
SELECT coalesce(array_agg(l.id ORDER BY l.id {order}) FILTER (WHERE
        ($3::text[] IS NULL OR l.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, l.queue) = ANY ($4))
        AND ($5::smallint[] IS NULL OR coalesce(c.priority, l.priority) = ANY ($5))
        AND ($6::text[] IS NULL OR l.tags && $6)
        AND ($7::text[] IS NULL OR l.tags @> $7)
        AND ($8::text IS NULL OR pelton.json_contains(coalesce(c.args, l.args), $8::jsonb))), '{}'),
    {end}(l.id), count(*)
FROM (
    SELECT j.id, j.kind, j.queue, j.priority, j.tags, j.args FROM pelton.job j
    WHERE ($1::bigint IS NULL OR j.id >= $1) AND ($2::bigint IS NULL OR j.id < $2) ORDER BY j.id {order} LIMIT $9
) l
LEFT JOIN LATERAL (SELECT c.queue, c.priority, c.args FROM pelton.job_change c WHERE c.job_id = l.id LIMIT 1) c ON true
