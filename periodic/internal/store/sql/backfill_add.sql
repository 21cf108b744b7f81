-- Stores a backfill, due at once.
-- Locks: none; the row of schedule_due is held.
INSERT INTO pelton.schedule_backfill (schedule_id, wake, from_at, to_at, decided, parallel, total, only_missed, created_by)
VALUES ($1, clock_timestamp(), $2, $3, $2::timestamptz - interval '1 microsecond', $4, $5, $6, $7) RETURNING id
