-- Reads what a person gave a user in a project.
SELECT r.role FROM pelton.access_role r WHERE r.user_id = $1 AND r.project = $2 AND r.source = 'person'
