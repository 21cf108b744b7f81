-- Chunks of logs of the jobs $1, in the order of the list, from behind run $2 and chunk $3 of the first on; at most $4. Each job's by the key; partitions
-- that are older than the job are left out. Data are read of those that are returned alone.
SELECT u.job, c.run, c.id, c.stream::text, c.data FROM unnest($1::bigint[]) WITH ORDINALITY AS u(job, place) CROSS JOIN LATERAL (
    SELECT l.run, l.id, l.stream, l.data FROM pelton.job_log l
    WHERE l.job_id = u.job AND l.id >= u.job - (600::bigint << 24) AND l.stream <> 'p' AND (u.place > 1 OR (l.run, l.id) > ($2::int, $3::bigint))
    ORDER BY l.run, l.id LIMIT $4
) c ORDER BY u.place, c.run, c.id LIMIT $4
