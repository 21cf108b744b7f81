-- Reads chunks of a run backwards from an id, down to the job's own second. The data comes along only if $6. No locks.
SELECT id, octet_length(data), CASE WHEN $6::boolean THEN data END
FROM pelton.job_log
WHERE job_id = $1 AND run = $2 AND id > $3 AND id < $4 AND stream::text = ANY ($5::text[])
ORDER BY id DESC LIMIT $7
