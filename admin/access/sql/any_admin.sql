-- Tells whether there is an admin of everything who is not disabled. Locks nothing.
SELECT EXISTS (
    SELECT FROM pelton.access_user u JOIN pelton.access_role r ON r.user_id = u.id
    WHERE u.disabled_at IS NULL AND r.project = '*' AND r.role = 'admin')
