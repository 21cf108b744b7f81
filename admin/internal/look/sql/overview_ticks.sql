-- The schedules whose ticks come next, of those that are not paused: by schedule_due_wake, and of those that only their owner fires up to 1,000. No locks.
WITH due AS (
    (SELECT d.schedule_id, d.next_at FROM pelton.schedule_due d WHERE d.code IS NULL AND d.wake IS NOT NULL AND d.next_at IS NOT NULL ORDER BY d.wake LIMIT 3)
    UNION ALL
    (SELECT c.schedule_id, c.next_at FROM (
        SELECT d.schedule_id, d.next_at FROM pelton.schedule_due d WHERE d.code IS NOT NULL AND d.wake IS NOT NULL AND d.next_at IS NOT NULL LIMIT 1000) c
        ORDER BY c.next_at LIMIT 3)
)
SELECT s.name, due.next_at FROM due JOIN pelton.schedule s ON s.id = due.schedule_id WHERE s.paused_at IS NULL ORDER BY due.next_at, s.name LIMIT 3
