-- Reads chunks of a run in order, by primary key, after an id; partitions before that id are pruned when the plan is made for
-- its value, later ones when it starts. No locks.
SELECT id, at, stream::text, pos, data
FROM pelton.job_log
WHERE job_id = $1 AND run = $2 AND id > $3 AND id < pelton.id_at(now() + interval '1 hour') AND stream::text = ANY ($4::text[])
ORDER BY id LIMIT $5
