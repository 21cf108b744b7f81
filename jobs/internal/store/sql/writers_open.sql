-- Tells whether a transaction that has written to the line is open, but for those that were passed because they stay open.
SELECT EXISTS (
    SELECT FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'pelton.job_ready'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND l.virtualtransaction <> ALL (ARRAY(
            SELECT split_part(p ->> 'writer', '*', 1)
            FROM (SELECT f.passed FROM pelton.floor f WHERE f.relation = 'job_ready' ORDER BY f.no DESC LIMIT 1) newest,
                jsonb_array_elements(newest.passed) AS p)))
