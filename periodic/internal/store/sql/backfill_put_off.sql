-- Puts a backfill off that could not be advanced, $2 seconds from now.
-- Locks: its row.
UPDATE pelton.schedule_backfill SET wake = clock_timestamp() + $2::float8 * interval '1 second' WHERE id = $1 AND wake IS NOT NULL
