-- Begins a session, unless the user was disabled or got another password since it was checked: waits for who is doing that.
INSERT INTO pelton.access_session (hash, user_id, expires_at, address)
SELECT $2::bytea, u.id, clock_timestamp() + $3::interval, $4::text FROM pelton.access_user u
WHERE u.id = $1 AND u.disabled_at IS NULL AND ($5::text IS NULL OR u.password = $5::text) FOR SHARE
RETURNING true
