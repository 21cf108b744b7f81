-- Reads how many microseconds remain until the first backfill is due that this process can advance ($1: codes); NULL: none is.
-- Locks: none.
SELECT (extract(epoch FROM min(b.wake) - clock_timestamp()) * 1000000)::bigint
FROM pelton.schedule_backfill b JOIN pelton.schedule_due d ON d.schedule_id = b.schedule_id
WHERE b.wake IS NOT NULL AND (d.code IS NULL OR d.code = ANY ($1::text[]))
