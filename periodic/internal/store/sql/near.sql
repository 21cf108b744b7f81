-- Names of schedules, for a hint of what was meant: those that begin alike, and others.
-- Locks: none.
SELECT s.name FROM pelton.schedule s ORDER BY starts_with(s.name, left($1, 3)) DESC, s.name LIMIT 1000
