-- How flows and schedules get on: rows of a name, a label and a value. Reports are read from the floor $2 on, due schedules from the floor $3
-- on; live runs, reports and schedules are counted up to $1, due schedules that only their owner's code can fire up to a tenth of that. For a transaction
-- without sequential scans, since the statistics of these tables say nothing about their heads. Locks nothing but ACCESS SHARE.
WITH first AS MATERIALIZED (
    SELECT (pelton.flow_report_first(ARRAY[$2::bigint], ARRAY[9223372036854775807]))[1] AS report,
        (pelton.schedule_due_first(ARRAY[$3::bigint], ARRAY[253402300799000000]))[1] AS wake
), coded AS MATERIALIZED (
    SELECT d.schedule_id, d.wake FROM pelton.schedule_due d WHERE d.code IS NOT NULL LIMIT $1 / 10
), schedules AS MATERIALIZED (
    SELECT count(*) AS rows FROM (SELECT FROM pelton.schedule_due LIMIT $1 + 1) s
)
SELECT 'runs', r.status, count(*)::float8 FROM (SELECT r.status FROM pelton.flow_run r WHERE r.ended_at IS NULL LIMIT $1) r GROUP BY r.status
UNION ALL SELECT 'reports', '', count(*) FROM pelton.flow_reports_from($2, $1::integer)
UNION ALL SELECT 'report_age', '', coalesce((SELECT greatest(extract(epoch FROM clock_timestamp() - r.at), 0) FROM pelton.flow_report r
        WHERE r.id = first.report), 0)::float8 FROM first
UNION ALL SELECT 'schedule_lag', '', coalesce(greatest(extract(epoch FROM clock_timestamp() - pelton.position_time(first.wake)), 0), 0)::float8 FROM first
UNION ALL SELECT 'schedule_lag', s.owner, coalesce(greatest(extract(epoch FROM clock_timestamp() - min(c.wake)), 0), 0)::float8
    FROM coded c JOIN pelton.schedule s ON s.id = c.schedule_id GROUP BY s.owner
UNION ALL SELECT 'schedules', '', CASE WHEN s.rows <= $1 THEN s.rows
    ELSE greatest(s.rows, (SELECT p.reltuples FROM pg_catalog.pg_class p WHERE p.oid = 'pelton.schedule_due'::regclass)) END::float8 FROM schedules s
UNION ALL SELECT 'backfills', '', count(*) FROM (SELECT FROM pelton.schedule_backfill b WHERE b.wake IS NOT NULL LIMIT $1) b
