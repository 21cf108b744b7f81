-- All partitions with their bounds, and the database's time. Reads the catalog only; $1: sizes too, which takes a moment's
-- ACCESS SHARE lock on each.
SELECT p.relname, c.relname, c.oid, pg_get_expr(c.relpartbound, c.oid), c.reltuples::bigint,
    CASE WHEN $1 THEN pg_total_relation_size(c.oid) ELSE 0 END, clock_timestamp()
FROM pg_catalog.pg_inherits i
JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
WHERE i.inhparent IN ('pelton.job'::regclass, 'pelton.job_attempt'::regclass, 'pelton.job_log'::regclass,
    'pelton.schedule_tick'::regclass)
