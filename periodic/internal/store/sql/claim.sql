-- Locks schedules that are due and that anybody can fire: the first ones from the floor ($1) on, at most $2. Locks: their rows of
-- schedule_due, SKIP LOCKED; several firers share the work. now() and not clock_timestamp(), so that the index ends the scan.
SELECT d.schedule_id, d.next_at, d.decided, d.cut, d.cut_until, d.waiting, d.live_job, d.live_run, d.live_since, d.paused, d.failures
FROM pelton.schedule_due d
WHERE d.code IS NULL AND d.wake >= pelton.position_time($1) AND d.wake <= now() ORDER BY d.wake LIMIT $2 FOR UPDATE SKIP LOCKED
