-- Lists tokens, the newest first: of one user ($1), with lesser ids than $2, that hold ($3), at most $4; NULL is no bound.
SELECT t.id, u.name, t.name, t.role, t.project, t.created_at, t.expires_at, t.used_at, t.revoked_at, t.expires_at <= clock_timestamp()
FROM pelton.access_token t JOIN pelton.access_user u ON u.id = t.user_id
WHERE ($1::bigint IS NULL OR t.user_id = $1) AND t.id < coalesce($2::bigint, 9223372036854775807)
    AND (NOT $3::boolean OR t.revoked_at IS NULL AND t.expires_at > clock_timestamp())
ORDER BY t.id DESC LIMIT $4
