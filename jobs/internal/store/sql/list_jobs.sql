-- Ids of jobs by what was asked, in order of id; NULL parameters filter nothing. Locks nothing. {order} and {sign} are put in by
-- the caller. Ids prune partitions: $1 <= id < $2.
SELECT j.id
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
WHERE ($1::bigint IS NULL OR j.id >= $1) AND ($2::bigint IS NULL OR j.id < $2)
    AND ($3::bigint[] IS NULL OR j.id = ANY ($3))
    AND ($4::text[] IS NULL OR j.kind = ANY ($4))
    AND ($5::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($5))
    AND ($6::smallint[] IS NULL OR coalesce(c.priority, j.priority) = ANY ($6))
    AND ($7::text[] IS NULL OR j.tags && $7)
    AND ($8::text[] IS NULL OR j.tags @> $8)
    AND ($9::text IS NULL OR pelton.json_contains(coalesce(c.args, j.args), $9::jsonb))
    AND ($10::bigint IS NULL OR j.id {sign} $10)
ORDER BY j.id {order} LIMIT $11
