-- Puts schedules off that could not be fired: $2 seconds, doubled with every failure in a row, at most five minutes. Locks: their rows of
-- schedule_due, in order of their ids.
UPDATE pelton.schedule_due d SET
    wake = CASE WHEN d.wake IS NOT NULL
        THEN clock_timestamp() + least(300, $2::float8 * power(2, least(d.failures, 12))) * interval '1 second' END,
    failures = least(d.failures + 1, 1000)
WHERE d.schedule_id = ANY ($1::bigint[])
