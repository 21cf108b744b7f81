-- Reads what a login by password is judged by. No locks.
SELECT u.id, u.name, coalesce(u.password, ''), u.disabled_at IS NOT NULL FROM pelton.access_user u
WHERE lower(u.name) = lower($1::text COLLATE "C")
