-- Writes how far a backfill is; $7 seconds from now it is looked at again (NULL: never).
-- Locks: its row, which is held.
UPDATE pelton.schedule_backfill SET decided = $2, started = started + $3, left_out = left_out + $4, succeeded = succeeded + $5,
    failed = failed + $6, not_started = not_started + $9, why = coalesce($10, why), wake = clock_timestamp() + $7::float8 * interval '1 second', status = $8,
    ended_at = CASE WHEN $8 <> 'running' THEN coalesce(ended_at, clock_timestamp()) END
WHERE id = $1
