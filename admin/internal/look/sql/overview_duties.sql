-- The scheduler's duties that are late, or fail: since when, and of those that fail, whose process and why, and whether others do them in time. A
-- handful of rows. No locks.
SELECT d.duty, CASE d.state WHEN 'late' THEN d.done_at ELSE d.failing_since END, CASE WHEN d.state <> 'late' THEN d.failed_by END,
    CASE WHEN d.state <> 'late' THEN d.error END, d.state = 'ok'
FROM pelton.duty_report d WHERE d.state <> 'ok' OR d.failing_since < clock_timestamp() - interval '1 minute' ORDER BY 5, 2, 1
