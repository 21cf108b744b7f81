-- Makes a token.
INSERT INTO pelton.access_token (user_id, name, project, role, expires_at, hash)
VALUES ($1, $2, $3, $4, clock_timestamp() + $5::interval, $6) RETURNING id, created_at, expires_at
