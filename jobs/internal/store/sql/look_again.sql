-- The last look before sleeping: is there a ticket in these lines, and is a transaction open that may commit one? Whoever
-- committed before the sleeper registered is seen by the first, whoever has not yet by the second. No locks.
SELECT EXISTS (
    SELECT FROM unnest($1::text[], $2::smallint[], $3::bigint[]) AS p(line, priority, mark)
    CROSS JOIN LATERAL (
        SELECT FROM pelton.job_ready t
        WHERE t.line = p.line AND t.priority = p.priority AND t.seq >= p.mark ORDER BY t.seq LIMIT 1) r),
    EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'pelton.job_ready'::regclass AND l.mode = 'RowExclusiveLock'
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid IS DISTINCT FROM pg_backend_pid())
