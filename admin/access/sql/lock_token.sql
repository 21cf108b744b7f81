-- Locks a token.
SELECT u.name, t.name, t.revoked_at IS NOT NULL FROM pelton.access_token t JOIN pelton.access_user u ON u.id = t.user_id
WHERE t.id = $1 FOR UPDATE OF t
