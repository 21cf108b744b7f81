-- Lists what waits of what people asked of a run as a whole.
SELECT action FROM pelton.flow_report WHERE run_id = $1 AND action IN ('begin', 'kill', 'pause', 'resume') ORDER BY id
