-- Reads what decides where a run goes, with what a person changed since. A custom plan each time, so that partitions are pruned.
SELECT j.id, coalesce(c.queue, j.queue), coalesce(c.priority, j.priority), coalesce(c.max_attempts, j.max_attempts),
    j.unique_key, coalesce(j.unique_states, 0), coalesce(j.metadata ? 'pelton:flow', false)
FROM pelton.job j LEFT JOIN pelton.job_change c ON c.job_id = j.id
WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $2 AND $3
