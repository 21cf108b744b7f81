-- Takes due jobs out of job_scheduled, first come first. Locks: their rows, SKIP LOCKED; several movers share the work. now()
-- and not clock_timestamp(), so that the index ends the scan.
WITH head AS MATERIALIZED (
    SELECT s.ctid AS tid FROM pelton.job_scheduled s
    WHERE s.wake >= pelton.position_time($1) AND s.wake <= now() ORDER BY s.wake LIMIT $2 FOR UPDATE SKIP LOCKED
)
DELETE FROM pelton.job_scheduled s WHERE s.ctid = ANY (ARRAY(SELECT tid FROM head))
RETURNING s.job_id, s.run, s.attempts, s.retry, s.wake, s.due,
    CASE WHEN EXISTS (SELECT FROM pelton.job_void v WHERE v.job_id = s.job_id)
        THEN coalesce(pelton.voided(s.job_id, s.run), '') ELSE '' END
