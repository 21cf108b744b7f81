-- Revokes a token that is locked.
UPDATE pelton.access_token SET revoked_at = clock_timestamp() WHERE id = $1
