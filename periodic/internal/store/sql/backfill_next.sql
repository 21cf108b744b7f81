-- Takes the backfill that is due first and whose schedule anybody can fire, or only this process ($1: codes). Locks: its schedule's row of
-- schedule_due, SKIP LOCKED, so that one process at a time advances it, and ticks get their numbers in order.
SELECT b.id, b.schedule_id
FROM pelton.schedule_backfill b JOIN pelton.schedule_due d ON d.schedule_id = b.schedule_id
WHERE b.wake <= clock_timestamp() AND (d.code IS NULL OR d.code = ANY ($1::text[]))
ORDER BY b.wake LIMIT 1 FOR UPDATE OF d SKIP LOCKED
