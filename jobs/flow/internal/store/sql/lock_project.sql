-- Locks a project's row, so that the creations of versions and runs of one project follow each other.
SELECT id FROM pelton.flow_project WHERE name = $1 FOR NO KEY UPDATE
