-- Deletes the timers of a run, or of one of its nodes.
DELETE FROM pelton.flow_timer WHERE run_id = $1 AND ($2::int IS NULL OR node = $2)
