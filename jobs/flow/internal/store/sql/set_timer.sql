-- Sets or moves a timer, or keeps one that is set.
INSERT INTO pelton.flow_timer AS t (run_id, node, what, at, args) VALUES ($1, $2, $3, clock_timestamp() + $4, $5)
ON CONFLICT (run_id, node, what) DO UPDATE SET at = CASE WHEN $6 THEN t.at ELSE excluded.at END, args = excluded.args
