-- Deletes audit rows past their retention, oldest first.
DELETE FROM pelton.audit WHERE id IN (
    SELECT a.id FROM pelton.audit a WHERE a.at < clock_timestamp() - $1::interval
    ORDER BY a.at LIMIT $2 FOR UPDATE SKIP LOCKED)
