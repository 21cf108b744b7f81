-- Makes a run.
INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, before, pipeline, priority, options, trace)
SELECT v.id, v.project_id, $2, $3, $4, $5, $6, $7, $8, nullif($9, '') FROM pelton.flow_version v WHERE v.id = $1
RETURNING id
