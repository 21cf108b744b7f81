-- Locks schedules by their ids, in that order, whether they are due or not. Locks: their rows of schedule_due; waits for whoever fires or
-- changes them.
SELECT d.schedule_id, d.next_at, d.decided, d.cut, d.cut_until, d.waiting, d.live_job, d.live_run, d.live_since, d.paused, d.failures
FROM pelton.schedule_due d WHERE d.schedule_id = ANY ($1::bigint[]) ORDER BY d.schedule_id FOR UPDATE
