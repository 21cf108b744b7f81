-- Locks the user that an issuer of OIDC vouches for.
SELECT u.id, u.name, u.disabled_at IS NOT NULL, u.password IS NOT NULL FROM pelton.access_user u
WHERE u.issuer = $1 AND u.subject = $2 FOR NO KEY UPDATE
