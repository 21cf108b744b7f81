-- Locks a run's row.
SELECT id FROM pelton.flow_run WHERE id = $1 FOR NO KEY UPDATE
