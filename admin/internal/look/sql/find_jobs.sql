-- Ids of jobs in a piece of the history, $1 <= id < $2, the newest first; NULL parameters filter nothing. $6 is a part of the args' text. By the
-- primary key backwards, until $7 are found; the piece prunes partitions, and its size and a time limit bound what is read. No locks.
SELECT j.id
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
WHERE j.id >= $1::bigint AND j.id < $2::bigint
    AND ($3::text[] IS NULL OR j.kind = ANY ($3))
    AND ($4::text[] IS NULL OR coalesce(c.queue, j.queue) = ANY ($4))
    AND ($5::text[] IS NULL OR j.tags @> $5)
    AND ($6::text IS NULL OR strpos(coalesce(c.args, j.args)::text, $6) > 0)
ORDER BY j.id DESC LIMIT $7
