-- A duty that somebody does in time is ok, also while another process fails at it; that this one does is told beside. A failure that was not
-- noted again for three minutes is of a process that is gone, and is not told.

CREATE OR REPLACE VIEW pelton.duty_report AS
    SELECT d.duty,
        CASE WHEN f.fails AND d.failing_since < t.now - interval '1 minute'
                AND (d.done_at < d.failing_since AND d.due_at < t.now - interval '1 minute' OR d.due_at < t.now - interval '3 minutes') THEN 'failing'
            WHEN d.due_at < t.now - interval '3 minutes' THEN 'late' ELSE 'ok' END AS state,
        d.done_at, d.done_by, greatest(t.now - d.due_at - interval '3 minutes', '0') AS late,
        CASE WHEN f.fails THEN d.failing_since END AS failing_since, CASE WHEN f.fails THEN d.failed_by END AS failed_by, CASE WHEN f.fails THEN d.error END AS error
    FROM pelton.duty d, LATERAL (SELECT clock_timestamp() AS now) t,
        LATERAL (SELECT d.failing_since IS NOT NULL AND d.failed_at > t.now - interval '3 minutes' AS fails) f;

COMMENT ON COLUMN pelton.duty_report.state IS
    'ok: somebody does it in time; late: nobody has done it for longer than it may rest; failing: nobody does, and a process has failed at it for a minute.';
COMMENT ON COLUMN pelton.duty_report.failing_since IS 'Since when a process fails at it, also while others do it in time; NULL: none does.';
COMMENT ON COLUMN pelton.duty_report.failed_by IS 'Client id of who failed last, while one fails.';
