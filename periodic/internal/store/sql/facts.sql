-- Reads what else verbs ask of a schedule that is locked. Another statement than that which locks, so that its snapshot is newer.
-- Locks: none.
SELECT s.paused_at IS NOT NULL, coalesce(s.paused_why, ''), s.code FROM pelton.schedule s WHERE s.id = $1
