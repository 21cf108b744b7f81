-- The scheduler's duties that are late, or fail: since when, and of those that fail, whose process and why. A handful of rows. No locks.
SELECT d.duty, CASE d.state WHEN 'failing' THEN d.failing_since ELSE d.done_at END, CASE d.state WHEN 'failing' THEN d.failed_by END,
    CASE d.state WHEN 'failing' THEN d.error END
FROM pelton.duty_report d WHERE d.state <> 'ok' ORDER BY 2, 1
