-- Locks schedules that are due: of those that anybody can fire the first ones from the floor ($1) on, and those that only this process can
-- ($2, 'owner/name'); at most $3 of each. Locks: their rows of schedule_due, SKIP LOCKED; several firers share the work. now() and not
-- clock_timestamp(), so that the index ends the scan.
(SELECT d.schedule_id, d.next_at, d.decided, d.cut, d.cut_until, d.waiting, d.live_job, d.live_run, d.live_since, d.paused, d.failures
    FROM pelton.schedule_due d
    WHERE d.code IS NULL AND d.wake >= pelton.position_time($1) AND d.wake <= now() ORDER BY d.wake LIMIT $3 FOR UPDATE SKIP LOCKED)
UNION ALL
(SELECT d.schedule_id, d.next_at, d.decided, d.cut, d.cut_until, d.waiting, d.live_job, d.live_run, d.live_since, d.paused, d.failures
    FROM pelton.schedule_due d
    WHERE d.code IS NOT NULL AND d.code = ANY ($2::text[]) AND d.wake <= now() LIMIT $3 FOR UPDATE SKIP LOCKED)
