-- The first $12 jobs with $1 <= id < $2, and whether each may match the filters $3 to $9 of search_states: its row does, or was changed since. If the states $13 are of jobs
-- that have ended, from the first on that has a run or a void: a long line before it is passed over. By the primary key, along which jobs are stored: looking at
-- one so costs a hundredth of finding it by its id. Locks nothing.
SELECT j.id, ($3::text[] IS NULL OR j.kind = ANY ($3)) AND ($6::text[] IS NULL OR j.tags && $6) AND ($7::text[] IS NULL OR j.tags @> $7) AND (
        ($4::text[] IS NULL OR j.queue = ANY ($4)) AND ($5::smallint[] IS NULL OR j.priority = ANY ($5))
            AND ($8::text IS NULL OR pelton.json_contains(j.args, $8::jsonb)) AND ($9::text IS NULL OR strpos(j.args::text, $9) > 0)
        OR EXISTS (SELECT FROM pelton.job_change c WHERE c.job_id = j.id AND c.job_id >= $1::bigint AND c.job_id < $2::bigint)) AS may
FROM pelton.job j
WHERE $11::bigint[] IS NULL AND j.id >= $1::bigint AND j.id < $2::bigint
    AND (NOT $13::text[] <@ '{cancelled,completed,discarded}' OR j.id {from} {first}(
        (SELECT a.job_id FROM pelton.job_attempt a WHERE a.job_id >= $1::bigint AND a.job_id < $2::bigint ORDER BY a.job_id {order} LIMIT 1),
        (SELECT v.job_id FROM pelton.job_void v WHERE v.job_id >= $1::bigint AND v.job_id < $2::bigint ORDER BY v.job_id {order} LIMIT 1)))
ORDER BY j.id {order} LIMIT $12
