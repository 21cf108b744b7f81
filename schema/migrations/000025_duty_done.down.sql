CREATE OR REPLACE VIEW pelton.duty_report AS
    SELECT d.duty,
        CASE WHEN d.failing_since < clock_timestamp() - interval '1 minute' AND d.failed_at > clock_timestamp() - interval '3 minutes' THEN 'failing'
            WHEN d.due_at < clock_timestamp() - interval '3 minutes' THEN 'late' ELSE 'ok' END AS state,
        d.done_at, d.done_by, greatest(clock_timestamp() - d.due_at - interval '3 minutes', '0') AS late,
        d.failing_since, d.failed_by, d.error
    FROM pelton.duty d;
COMMENT ON COLUMN pelton.duty_report.state IS
    'ok; late: nobody has done it for longer than it may rest; failing: a process has failed at it for a minute, and nobody has done it since.';
COMMENT ON COLUMN pelton.duty_report.failing_since IS 'Since when it fails; NULL: it does not.';
COMMENT ON COLUMN pelton.duty_report.failed_by IS 'Client id of who failed last.';
