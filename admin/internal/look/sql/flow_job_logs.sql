-- Chunks of the logs of job $1's runs, in order, from behind run $2 and chunk $3 on, with ids below $5; at most $4. By the key; partitions that are older than the
-- job or later than $5 are left out. Reports of progress are no part of it.
SELECT l.run, l.id, l.at, l.stream::text, l.pos, l.data FROM pelton.job_log l
WHERE l.job_id = $1::bigint AND l.id >= $1::bigint - (600::bigint << 24) AND l.id < $5::bigint AND l.stream <> 'p' AND (l.run, l.id) > ($2::int, $3::bigint)
ORDER BY l.run, l.id LIMIT $4
