-- Lists the live runs that follow a run.
SELECT id FROM pelton.flow_run WHERE project_id = $1 AND flow = $2 AND ended_at IS NULL AND before = $3
