-- Sizes of what is stored of each run and stream of a job: chunks, bytes stored, bytes printed. No locks.
SELECT run, stream::text, count(*), sum(octet_length(data))::bigint, max(pos + octet_length(data))::bigint, min(at), max(at)
FROM pelton.job_log
WHERE job_id = $1 AND id > $2 AND id < pelton.id_at(now() + interval '1 hour')
GROUP BY run, stream ORDER BY run, min(id)
