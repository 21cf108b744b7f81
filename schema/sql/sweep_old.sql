-- Deletes up to $4 jobs of an id range [$1, $2) of an _old partition that ended before $3, with their attempts. The caller
-- holds the partition's advisory lock, taken in an earlier statement, so nobody revives one of them meanwhile.
WITH ended AS (
    SELECT a.job_id FROM pelton.job_attempt a
    WHERE a.job_id >= $1 AND a.job_id < $2
    GROUP BY a.job_id
    HAVING max(a.ended_at) < $3
        AND max(a.run) = max(a.run) FILTER (WHERE a.outcome IN ('completed', 'cancelled', 'discarded'))
    LIMIT $4
), job AS (
    DELETE FROM pelton.job j WHERE j.id >= $1 AND j.id < $2 AND j.id = ANY (ARRAY (SELECT e.job_id FROM ended e))
), attempt AS (
    DELETE FROM pelton.job_attempt a WHERE a.job_id >= $1 AND a.job_id < $2
        AND a.job_id = ANY (ARRAY (SELECT e.job_id FROM ended e))
)
SELECT count(*) FROM ended
