-- Locks schedules that are due and that only this process can fire: of those in $1 ('owner/name'), at most $2. Locks: their rows of
-- schedule_due, SKIP LOCKED.
SELECT d.schedule_id, d.next_at, d.decided, d.cut, d.cut_until, d.waiting, d.live_job, d.live_run, d.live_since, d.paused, d.failures
FROM pelton.schedule_due d
WHERE d.code IS NOT NULL AND d.code = ANY ($1::text[]) AND d.wake <= now() LIMIT $2 FOR UPDATE SKIP LOCKED
