-- Reads the roles of a user.
SELECT r.project, r.role, r.source FROM pelton.access_role r WHERE r.user_id = $1 ORDER BY r.project, r.source
