-- Deletes the timers of a run, and lists them.
DELETE FROM pelton.flow_timer WHERE run_id = $1 RETURNING node, what, at <= clock_timestamp()
