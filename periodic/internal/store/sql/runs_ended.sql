-- Reads which of these runs of flows have ended, and when. One that is gone has. No locks.
SELECT i.id, r.ended_at FROM unnest($1::bigint[]) AS i(id) LEFT JOIN pelton.flow_run r ON r.id = i.id
WHERE r.id IS NULL OR r.ended_at IS NOT NULL
