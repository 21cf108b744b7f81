-- How many jobs of an id range [$1, $2) must outlive their partition: those that have not ended, and those that ended after $3. A job has ended when its last run is completed, cancelled or discarded. Plain reads, no row locks.
SELECT count(*) FROM pelton.job j
WHERE j.id >= $1 AND j.id < $2 AND NOT EXISTS (
    SELECT FROM (
        SELECT a.job_id FROM pelton.job_attempt a
        WHERE a.job_id >= $1 AND a.job_id < $2
        GROUP BY a.job_id
        HAVING max(a.ended_at) < $3
            AND max(a.run) = max(a.run) FILTER (WHERE a.outcome IN ('completed', 'cancelled', 'discarded'))) ended
    WHERE ended.job_id = j.id)
