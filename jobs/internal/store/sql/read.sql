-- Reads claimed jobs. A custom plan each time, so that partitions are pruned. No locks. What a person changed is read apart: in
-- a join its table, nearly always empty, is looked at again for each job.
SELECT j.id, j.created_at, j.scheduled_at, j.priority, j.max_attempts, coalesce(j.unique_states, 0), j.kind, j.queue, j.args,
    j.metadata, j.tags, j.unique_key
FROM pelton.job j WHERE j.id = ANY ((SELECT $1::bigint[])::bigint[]) AND j.id BETWEEN $2 AND $3
