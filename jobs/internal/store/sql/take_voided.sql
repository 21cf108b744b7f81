-- Takes up to $2 tickets out of the line that hold jobs with a void older than $1 seconds: those of lines that nobody claims from.
-- Reads the line whole if there is such a void. Locks: the tickets' rows, SKIP LOCKED.
WITH old AS MATERIALIZED (
    SELECT array_agg(o.job_id) AS ids
    FROM (SELECT v.job_id FROM pelton.job_void v WHERE v.at < clock_timestamp() - $1::float8 * interval '1 second'
        ORDER BY v.at LIMIT 1000) o
), head AS MATERIALIZED (
    SELECT r.ctid AS tid FROM old, pelton.job_ready r WHERE old.ids IS NOT NULL AND r.job_ids && old.ids LIMIT $2 FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM pelton.job_ready r WHERE r.ctid = ANY (ARRAY(SELECT tid FROM head))
RETURNING r.seq, r.entered_at, r.priority, r.line, r.job_ids, r.runs, r.attempts
