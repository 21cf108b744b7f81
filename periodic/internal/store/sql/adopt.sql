-- Gives a schedule another owner.
-- Locks: its row; that of schedule_due is held.
UPDATE pelton.schedule SET owner = $2 WHERE id = $1
