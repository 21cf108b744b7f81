-- Tells whether there is a user, and one who may log in and is admin of everything.
SELECT EXISTS (SELECT FROM pelton.access_user), EXISTS (
    SELECT FROM pelton.access_user u JOIN pelton.access_role r ON r.user_id = u.id
    WHERE u.disabled_at IS NULL AND (u.password IS NOT NULL OR u.subject IS NOT NULL) AND r.project = '*' AND r.role = 'admin')
