-- Deletes counts of failed logins that no longer matter.
DELETE FROM pelton.access_failure WHERE key IN (
    SELECT f.key FROM pelton.access_failure f WHERE f.at < clock_timestamp() - $1::interval
    ORDER BY f.at LIMIT $2 FOR UPDATE SKIP LOCKED)
