-- Lists the runs of a flow that have not ended.
SELECT r.id, r.version_id, p.name, v.no, r.flow, r.status, r.step, r.created_at, r.started_at, r.ended_at, r.resumed_at, r.created_by, r.before,
    r.pipeline, r.priority, r.options, r.project_id, v.format, r.followed, r.reason, r.trace
FROM pelton.flow_run r JOIN pelton.flow_version v ON v.id = r.version_id JOIN pelton.flow_project p ON p.id = r.project_id
WHERE r.project_id = $1 AND r.flow = $2 AND r.ended_at IS NULL ORDER BY r.id
