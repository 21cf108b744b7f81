-- Lists tokens, the newest first; of one user, or all.
SELECT t.id, u.name, t.name, t.role, t.project, t.created_at, t.expires_at, t.used_at, t.revoked_at, t.expires_at <= clock_timestamp()
FROM pelton.access_token t JOIN pelton.access_user u ON u.id = t.user_id
WHERE $1::bigint IS NULL OR t.user_id = $1 ORDER BY t.id DESC
