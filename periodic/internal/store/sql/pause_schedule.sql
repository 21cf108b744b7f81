-- Notes a pause.
-- Locks: its row; that of schedule_due is held.
UPDATE pelton.schedule SET paused_at = clock_timestamp(), paused_why = $2, paused_by = $3 WHERE id = $1
