-- Deletes tokens that were revoked or ran out as long ago as audit entries are kept. Reads the whole table, which is small.
DELETE FROM pelton.access_token WHERE id IN (
    SELECT t.id FROM pelton.access_token t WHERE least(t.revoked_at, t.expires_at) < clock_timestamp() - $1::interval
    LIMIT $2 FOR UPDATE SKIP LOCKED)
