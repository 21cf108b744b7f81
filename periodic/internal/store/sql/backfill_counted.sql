-- Forgets runs of a backfill that have ended.
-- Locks: their rows; that of the backfill is held.
DELETE FROM pelton.schedule_backfill_live WHERE backfill_id = $1 AND tick = ANY ($2::timestamptz[])
