-- Sets or moves a timer.
INSERT INTO pelton.flow_timer (run_id, node, what, at, args) VALUES ($1, $2, $3, clock_timestamp() + $4, $5)
ON CONFLICT (run_id, node, what) DO UPDATE SET at = excluded.at, args = excluded.args
