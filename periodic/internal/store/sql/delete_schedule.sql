-- Deletes a schedule; its ticks stay until retention drops them.
-- Locks: its row; that of schedule_due is held.
DELETE FROM pelton.schedule WHERE id = $1
