-- Reads chunks of a run in order, by primary key, between two ids, whose values leave partitions out when the plan is made. No locks.
SELECT id, at, stream::text, pos, data
FROM pelton.job_log
WHERE job_id = $1 AND run = $2 AND id > $3 AND id < $6 AND stream::text = ANY ($4::text[])
ORDER BY id LIMIT $5
