-- Notes that a session was seen.
UPDATE pelton.access_session SET seen_at = clock_timestamp() WHERE hash = $1 AND seen_at < clock_timestamp() - interval '1 minute'
