-- Writes where schedules are. wake is not before now, by the clock that the floor goes by: a time that lay below it would never be found.
-- Locks: their rows of schedule_due, which the transaction holds.
UPDATE pelton.schedule_due d SET
    wake = CASE WHEN u.wake IS NOT NULL THEN greatest(u.wake, clock_timestamp()) END, next_at = u.next_at, decided = u.decided, cut = u.cut,
    cut_until = u.cut_until, waiting = u.waiting, live_job = u.live_job, live_run = u.live_run, live_since = u.live_since,
    paused = u.paused, failures = u.failures
FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::timestamptz[], $7::timestamptz[],
    $8::bigint[], $9::bigint[], $10::timestamptz[], $11::boolean[], $12::smallint[])
    AS u(schedule_id, wake, next_at, decided, cut, cut_until, waiting, live_job, live_run, live_since, paused, failures)
WHERE d.schedule_id = u.schedule_id
