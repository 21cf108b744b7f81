-- Gives a locked secret a new value.
UPDATE pelton.secret SET version = $3, set_by = $4, key = $5, nonce = $6, value = $7, set_at = clock_timestamp() WHERE project = $1 AND name = $2
