-- Locks a run's row if nobody else has, and reads the time.
SELECT clock_timestamp() FROM pelton.flow_run WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED
