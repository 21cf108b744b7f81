-- Duties of the scheduler's that nobody does in time, or that fail. At most $1; there are a handful.
SELECT d.duty, extract(epoch FROM clock_timestamp() - coalesce(d.failing_since, d.done_at))::float8,
    CASE d.state WHEN 'failing' THEN 'fails since ' || to_char(d.failing_since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') || ' at ' || d.failed_by || ': ' || d.error
        ELSE 'nobody has done it since ' || to_char(d.done_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') END
FROM pelton.duty_report d WHERE d.state <> 'ok' ORDER BY 2 DESC, 1 LIMIT $1
