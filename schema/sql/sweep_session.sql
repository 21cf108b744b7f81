-- Deletes sessions that are over.
DELETE FROM pelton.access_session WHERE hash IN (
    SELECT s.hash FROM pelton.access_session s WHERE s.expires_at < clock_timestamp() - $1::interval
    ORDER BY s.expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
