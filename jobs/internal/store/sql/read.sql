-- Reads claimed jobs with what a person changed since. A custom plan each time, so that partitions are pruned. No locks.
SELECT j.id, j.created_at, j.scheduled_at, coalesce(c.priority, j.priority), coalesce(c.max_attempts, j.max_attempts),
    coalesce(j.unique_states, 0), j.kind, coalesce(c.queue, j.queue), coalesce(c.args, j.args), j.metadata, c.metadata, j.tags,
    j.unique_key
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $2 AND $3
