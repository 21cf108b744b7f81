-- Changes what a schedule is.
-- Locks: its row; that of schedule_due is held.
UPDATE pelton.schedule SET version = version + 1, changed_at = clock_timestamp(), code = $2, spec = $3::json WHERE id = $1
