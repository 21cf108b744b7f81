-- Bytes on disk: of the database, and of the tables with their indexes and TOAST, by family. Asks the file system for every file, and takes a
-- moment's ACCESS SHARE lock on each table.
SELECT 'database', '', pg_database_size(current_database())::float8
UNION ALL
SELECT 'size', CASE
        WHEN t.name IN ('job', 'job_attempt', 'job_log', 'job_dead', 'schedule_tick') THEN t.name
        WHEN starts_with(t.name, 'flow') THEN 'flow'
        WHEN starts_with(t.name, 'schedule') THEN 'schedule'
        WHEN starts_with(t.name, 'job') OR t.name IN ('executor', 'floor') THEN 'moving'
        ELSE 'other'
    END, coalesce(sum(pg_total_relation_size(t.oid)), 0)::float8
FROM (
    SELECT c.oid, coalesce(p.relname, c.relname) AS name FROM pg_catalog.pg_class c
    LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
    LEFT JOIN pg_catalog.pg_class p ON p.oid = i.inhparent
    WHERE c.relkind = 'r' AND c.relnamespace = (SELECT j.relnamespace FROM pg_catalog.pg_class j WHERE j.oid = 'pelton.job'::regclass)
) t
GROUP BY 2
