-- Deletes answers to requests with a key that nobody may ask for any more.
DELETE FROM pelton.api_request WHERE (actor, key) IN (
    SELECT r.actor, r.key FROM pelton.api_request r WHERE r.at < clock_timestamp() - $1::interval
    ORDER BY r.at LIMIT $2 FOR UPDATE SKIP LOCKED)
