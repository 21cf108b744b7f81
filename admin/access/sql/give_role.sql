-- Gives a role in a project instead of the one that was given there.
INSERT INTO pelton.access_role (user_id, project, source, role) VALUES ($1, $2, $3, $4)
ON CONFLICT (user_id, project, source) DO UPDATE SET role = excluded.role
