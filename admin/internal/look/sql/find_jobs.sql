-- Looks at the $7 newest jobs with $1 <= id < $2: the ids of those that match, the newest first, the least id looked at (NULL: none), and how many
-- were looked at. NULL parameters filter nothing; $6 is a part of the args' text. By the primary key backwards: $7 bounds what is read. No locks.
SELECT coalesce(array_agg(l.id ORDER BY l.id DESC) FILTER (WHERE
        ($3::text[] IS NULL OR l.kind = ANY ($3))
        AND ($4::text[] IS NULL OR coalesce(c.queue, l.queue) = ANY ($4))
        AND ($5::text[] IS NULL OR l.tags @> $5)
        AND ($6::text IS NULL OR strpos(coalesce(c.args, l.args)::text, $6) > 0)), '{}'),
    min(l.id), count(*)
FROM (
    SELECT j.id, j.kind, j.queue, j.tags, j.args FROM pelton.job j WHERE j.id >= $1::bigint AND j.id < $2::bigint ORDER BY j.id DESC LIMIT $7
) l
LEFT JOIN LATERAL (SELECT c.queue, c.args FROM pelton.job_change c WHERE c.job_id = l.id LIMIT 1) c ON true
