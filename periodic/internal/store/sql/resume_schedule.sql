-- Notes the end of a pause.
-- Locks: its row; that of schedule_due is held.
UPDATE pelton.schedule SET paused_at = NULL, paused_why = NULL, paused_by = NULL WHERE id = $1
