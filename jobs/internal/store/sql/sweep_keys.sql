-- Gives up the unique keys among the next $2 after $1 whose jobs hold them no longer. Returns how many, and the last key looked
-- at, NULL at the end. Locks: the rows of those that look free, in key order, SKIP LOCKED; judged again under the lock, as a retry
-- may have been quicker, so the transaction must be READ COMMITTED.
WITH page AS MATERIALIZED (
    SELECT u.key, u.job_id, u.states FROM pelton.job_unique u WHERE u.key > $1 ORDER BY u.key LIMIT $2
), free AS MATERIALIZED (
    SELECT p.key, p.job_id FROM page p WHERE pelton.key_is_free(p.job_id, p.states)
), locked AS MATERIALIZED (
    SELECT u.ctid AS tid, u.job_id, u.states FROM pelton.job_unique u JOIN free f ON u.key = f.key AND u.job_id = f.job_id
    ORDER BY u.key FOR UPDATE OF u SKIP LOCKED
), gone AS (
    DELETE FROM pelton.job_unique WHERE ctid = ANY (ARRAY(
        SELECT l.tid FROM locked l WHERE pelton.key_is_free(l.job_id, l.states)))
    RETURNING 1
)
SELECT (SELECT count(*) FROM gone), (SELECT p.key FROM page p ORDER BY p.key DESC LIMIT 1)
