-- Takes back what a person gave in a project.
DELETE FROM pelton.access_role WHERE user_id = $1 AND project = $2 AND source = 'person'
