-- Locks a backfill.
-- Locks: its row; that of its schedule in schedule_due is held, or is not needed.
SELECT b.id, b.schedule_id, b.from_at, b.to_at, b.decided, b.parallel, b.only_missed, b.status, b.wake
FROM pelton.schedule_backfill b WHERE b.id = $1 FOR UPDATE
