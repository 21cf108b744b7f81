-- Reads who holds ROW EXCLUSIVE on the table: whoever wrote and has not ended, subtransactions under their top
-- transaction's id, and prepared transactions (without a process; two of them can share an id, hence the count).
SELECT pg_postmaster_start_time(),
    coalesce(array_agg(h.id) FILTER (WHERE NOT h.prepared), '{}'), coalesce(array_agg(h.id || '*' || h.n) FILTER (WHERE h.prepared), '{}')
FROM (
    SELECT l.virtualtransaction AS id, l.pid IS NULL AS prepared, count(*) AS n FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'pelton.flow_report'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
        AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    GROUP BY 1, 2
) h
