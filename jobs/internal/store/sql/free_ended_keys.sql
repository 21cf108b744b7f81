-- Frees unique keys of jobs that ended outside their keys' states. SKIP LOCKED: a user's transaction may hold a key; the
-- sweeper comes back for it.
DELETE FROM pelton.job_unique WHERE ctid = ANY (ARRAY(
    SELECT u.ctid FROM pelton.job_unique u JOIN unnest($1::bigint[], $2::smallint[]) AS e(job_id, bit) ON u.job_id = e.job_id
    WHERE u.states & e.bit = 0 ORDER BY u.key FOR UPDATE OF u SKIP LOCKED))
