-- Locks a project's row, by id.
SELECT FROM pelton.flow_project WHERE id = $1 FOR NO KEY UPDATE
