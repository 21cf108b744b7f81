-- Frees unique keys of jobs that ended outside their keys' states, if they are free still: a retry may have been quicker. Judged
-- under the lock, so the transaction must be READ COMMITTED. SKIP LOCKED: a user's transaction may hold a key; the sweeper comes
-- back for it.
WITH locked AS MATERIALIZED (
    SELECT u.ctid AS tid, u.job_id, u.states
    FROM pelton.job_unique u JOIN unnest($1::bigint[], $2::smallint[]) AS e(job_id, bit) ON u.job_id = e.job_id
    WHERE u.states & e.bit = 0 ORDER BY u.key FOR UPDATE OF u SKIP LOCKED
)
DELETE FROM pelton.job_unique WHERE ctid = ANY (ARRAY(
    SELECT l.tid FROM locked l WHERE pelton.key_is_free(l.job_id, l.states)))
