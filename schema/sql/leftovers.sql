-- Tables that an interrupted pass had made or taken out. Reads the catalog only.
SELECT c.relname
FROM pg_catalog.pg_class c
WHERE c.relnamespace = (SELECT j.relnamespace FROM pg_catalog.pg_class j WHERE j.oid = 'pelton.job'::regclass)
    AND c.relkind = 'r' AND NOT c.relispartition AND c.relname ~ '^(job|job_attempt|job_log|schedule_tick)_(p|old|next|gone)_'
ORDER BY c.relname
