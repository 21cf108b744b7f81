-- Locks a run's row if nobody else has.
SELECT id FROM pelton.flow_run WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED
