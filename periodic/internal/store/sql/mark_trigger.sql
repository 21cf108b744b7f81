-- Notes the times that a push has given a schedule.
-- Locks: its row; that of schedule_due is held.
UPDATE pelton.schedule SET trigger_cron = $2 WHERE id = $1 AND trigger_cron IS DISTINCT FROM $2
