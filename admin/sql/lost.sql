-- Of the jobs with $1 <= id < $2 that are older than ten seconds: how many are in no place, as lost_jobs() has it, and the least id of those that have neither ended
-- nor wait in job_scheduled or job_parked (NULL: none). Runs and jobs by the ranges of their keys; the line and the leases are read whole, where there is such a job. Locks nothing.
WITH live AS MATERIALIZED (
    SELECT j.id FROM pelton.job j
    WHERE j.id >= $1::bigint AND j.id < $2::bigint AND j.created_at < clock_timestamp() - interval '10 seconds'
        AND NOT EXISTS (
            SELECT FROM pelton.job_attempt a WHERE a.job_id = j.id AND a.job_id >= $1 AND a.job_id < $2 AND a.outcome IN ('completed', 'cancelled', 'discarded')
                AND NOT EXISTS (SELECT FROM pelton.job_attempt n WHERE n.job_id = a.job_id AND n.run = a.run + 1 AND n.job_id >= $1 AND n.job_id < $2))
        AND NOT EXISTS (SELECT FROM pelton.job_scheduled s WHERE s.job_id = j.id)
        AND NOT EXISTS (SELECT FROM pelton.job_parked p WHERE p.job_id = j.id)
        AND NOT EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = j.id AND v.reason = 'deleted')
), placed AS MATERIALIZED (
    SELECT u.id FROM pelton.job_ready r, unnest(r.job_ids, r.runs) AS u(id, run)
    WHERE EXISTS (SELECT FROM live) AND u.id >= $1 AND u.id < $2
        AND NOT EXISTS (SELECT FROM pelton.job_void v JOIN pelton.job_attempt a ON a.job_id = v.job_id AND a.run = coalesce(u.run, 1)
            WHERE v.job_id = u.id AND v.reason = 'cancelled' AND v.run BETWEEN coalesce(u.run, 1) - 1 AND coalesce(u.run, 1) AND a.job_id >= $1 AND a.job_id < $2)
    UNION ALL
    SELECT u.id FROM pelton.job_lease l, unnest(l.job_ids, l.runs) AS u(id, run)
    WHERE EXISTS (SELECT FROM live) AND u.id >= $1 AND u.id < $2
        AND NOT EXISTS (SELECT FROM pelton.job_attempt a WHERE a.job_id = u.id AND a.run = coalesce(u.run, 1) AND a.job_id >= $1 AND a.job_id < $2)
)
SELECT count(*) FILTER (WHERE NOT EXISTS (SELECT FROM placed p WHERE p.id = l.id)), min(l.id) FROM live l
