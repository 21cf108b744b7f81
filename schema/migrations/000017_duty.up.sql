-- How the scheduler's duties get on: a row per duty, whoever does it. Each scheduler notes about twice a minute which duties it did since, and
-- which fail; so what nobody does any more is seen by who reads this, also if there is no scheduler left.

CREATE TABLE pelton.duty (
    duty text COLLATE "C" PRIMARY KEY,
    done_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- the end of the last step that went well; at first, when this table was made
    due_at timestamptz NOT NULL DEFAULT clock_timestamp(), -- when the next one was to begin
    failing_since timestamptz,          -- NULL: no step has failed since done_at
    failed_at timestamptz,              -- the last step that failed
    done_by text,                       -- processes, by their clients' ids
    failed_by text,
    error text                          -- of the last step that failed, while failing_since is there
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, vacuum_truncate = off);
INSERT INTO pelton.duty (duty)
VALUES ('mover'), ('marker'), ('marker of scheduled jobs'), ('reaper'), ('sweeper'), ('keeper');

-- A step takes up to two minutes, and is noted up to half a minute later. One that failed is tried again within ten seconds, so after a minute it
-- was no accident. A process that is gone does not fail any more.
CREATE VIEW pelton.duty_report AS
    SELECT d.duty,
        CASE WHEN d.failing_since < clock_timestamp() - interval '1 minute' AND d.failed_at > clock_timestamp() - interval '3 minutes' THEN 'failing'
            WHEN d.due_at < clock_timestamp() - interval '3 minutes' THEN 'late' ELSE 'ok' END AS state,
        d.done_at, d.done_by, greatest(clock_timestamp() - d.due_at - interval '3 minutes', '0') AS late,
        d.failing_since, d.failed_by, d.error
    FROM pelton.duty d;

COMMENT ON VIEW pelton.duty_report IS 'The scheduler''s duties: done in time, or not, and why.';
COMMENT ON COLUMN pelton.duty_report.duty IS 'What is to be done, as logs and metrics call it.';
COMMENT ON COLUMN pelton.duty_report.state IS
    'ok; late: nobody has done it for longer than it may rest; failing: a process has failed at it for a minute, and nobody has done it since.';
COMMENT ON COLUMN pelton.duty_report.done_at IS 'When it was last done. At first: when the table was made.';
COMMENT ON COLUMN pelton.duty_report.done_by IS 'Client id of who did it; NULL: nobody yet.';
COMMENT ON COLUMN pelton.duty_report.late IS 'For how long it has been late; 0: it is not.';
COMMENT ON COLUMN pelton.duty_report.failing_since IS 'Since when it fails; NULL: it does not.';
COMMENT ON COLUMN pelton.duty_report.failed_by IS 'Client id of who failed last.';
COMMENT ON COLUMN pelton.duty_report.error IS 'Why, while it fails.';
