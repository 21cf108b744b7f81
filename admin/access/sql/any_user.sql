-- Tells whether there is a user; one who may log in by password and is admin of everything; and such a one who logs in by OIDC.
SELECT EXISTS (SELECT FROM pelton.access_user), coalesce(bool_or(a.password IS NOT NULL), false), coalesce(bool_or(a.password IS NULL), false)
FROM (
    SELECT u.password FROM pelton.access_user u JOIN pelton.access_role r ON r.user_id = u.id
    WHERE u.disabled_at IS NULL AND r.project = '*' AND r.role = 'admin') a
