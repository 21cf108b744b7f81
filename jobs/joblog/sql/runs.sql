-- Sizes of what is stored of each run and stream of the jobs $1: chunks, bytes stored, bytes printed. $2 are ids of logs, in step, before which none of a job's
-- is: older partitions are left out. No locks.
SELECT u.job, l.* FROM unnest($1::bigint[], $2::bigint[]) AS u(job, low) CROSS JOIN LATERAL (
    SELECT run, stream::text, count(*), sum(octet_length(data))::bigint, max(pos + octet_length(data))::bigint, min(at), max(at)
    FROM pelton.job_log
    WHERE job_id = u.job AND id > u.low AND id < pelton.id_at(now() + interval '1 hour')
    GROUP BY run, stream ORDER BY run, min(id)
) l
