-- The schedules of an owner.
-- Locks: none.
SELECT s.id, s.name, coalesce(s.paused_why, '') FROM pelton.schedule s WHERE s.owner = $1 AND s.owner <> '' ORDER BY s.name
