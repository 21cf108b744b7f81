-- A run.
SELECT r.id, p.name, v.no, r.flow, r.status, r.created_at, r.started_at, r.ended_at, r.resumed_at, r.created_by, r.before, r.pipeline, r.priority, r.options, r.reason
FROM pelton.flow_run r JOIN pelton.flow_version v ON v.id = r.version_id JOIN pelton.flow_project p ON p.id = r.project_id WHERE r.id = $1
