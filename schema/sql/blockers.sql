-- Who holds a lock that conflicts with ACCESS EXCLUSIVE on one of these tables, oldest transaction first. No locks.
SELECT l.pid, coalesce(a.state, 'prepared'), coalesce(left(a.query, 200), ''), coalesce(a.xact_start, clock_timestamp())
FROM (SELECT DISTINCT l.pid FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'relation' AND l.granted AND l.relation = ANY ($1::text[]::regclass[])
        AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
        AND l.pid IS DISTINCT FROM pg_backend_pid()) l
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
ORDER BY 4
LIMIT 5
