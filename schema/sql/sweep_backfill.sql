-- Deletes backfills that ended longer ago than ticks are kept, with what is left of their runs.
DELETE FROM pelton.schedule_backfill WHERE id IN (
    SELECT b.id FROM pelton.schedule_backfill b WHERE b.ended_at < clock_timestamp() - $1::interval
    ORDER BY b.id LIMIT $2 FOR UPDATE SKIP LOCKED)
