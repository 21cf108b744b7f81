-- Copies the survivors (see survivors.sql) of an id range into a table of their own. Plain reads, no row locks.
INSERT INTO {next}
SELECT j.* FROM pelton.job j
WHERE j.id >= $1 AND j.id < $2 AND NOT EXISTS (
    SELECT FROM (
        SELECT a.job_id FROM pelton.job_attempt a
        WHERE a.job_id >= $1 AND a.job_id < $2
        GROUP BY a.job_id
        HAVING max(a.ended_at) < $3
            AND max(a.run) = max(a.run) FILTER (WHERE a.outcome IN ('completed', 'cancelled', 'discarded'))) ended
    WHERE ended.job_id = j.id)
