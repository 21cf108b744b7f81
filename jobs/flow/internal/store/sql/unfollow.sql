-- Has the live runs that follow a run follow none. Waits for the locks of their rows, which steps hold for a moment.
UPDATE pelton.flow_run SET before = NULL WHERE project_id = $1 AND flow = $2 AND ended_at IS NULL AND before = $3 RETURNING id
