-- Schedules that should have been looked at before $1, and were not: nobody fires them. Both by index; at most $3 of a kind. $2
-- schedules, empty: all.
WITH late AS MATERIALIZED (
    (SELECT d.schedule_id, d.wake FROM pelton.schedule_due d WHERE d.code IS NULL AND d.wake < $1 ORDER BY d.wake LIMIT $3)
    UNION ALL
    (SELECT d.schedule_id, d.wake FROM pelton.schedule_due d WHERE d.code IS NOT NULL AND d.wake < $1 LIMIT $3)
)
SELECT s.name, extract(epoch FROM clock_timestamp() - l.wake)::float8,
    'due since ' || to_char(l.wake AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ', and nobody has fired it'
FROM late l JOIN pelton.schedule s ON s.id = l.schedule_id
WHERE s.paused_at IS NULL AND (cardinality($2::text[]) = 0 OR s.name = ANY ($2::text[]))
ORDER BY l.wake, s.name LIMIT $4
