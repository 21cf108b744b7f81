-- Lists the open transactions that have written to the line, by virtual id: those of $1 that are still open, or, if that is NULL,
-- all but those that were passed because they stay open.
SELECT ARRAY(
    SELECT DISTINCT l.virtualtransaction FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'pelton.job_ready'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
        AND CASE WHEN $1::text[] IS NOT NULL THEN l.virtualtransaction = ANY ($1::text[])
            ELSE l.virtualtransaction <> ALL (ARRAY(
                SELECT split_part(p ->> 'writer', '*', 1)
                FROM (SELECT f.passed FROM pelton.floor f WHERE f.relation = 'job_ready' ORDER BY f.no DESC LIMIT 1) newest,
                    jsonb_array_elements(newest.passed) AS p)) END)
