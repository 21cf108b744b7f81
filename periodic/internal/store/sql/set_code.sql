-- Says who alone can fire a schedule; NULL: anybody can.
-- Locks: its row of schedule_due, which is held.
UPDATE pelton.schedule_due SET code = $2 WHERE schedule_id = $1 AND code IS DISTINCT FROM $2
