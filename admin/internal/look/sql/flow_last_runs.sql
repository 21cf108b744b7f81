-- The last $3 runs of a flow, the newest first.
SELECT r.id, v.no, r.status, r.created_at, r.started_at, r.ended_at, r.created_by
FROM pelton.flow_run r JOIN pelton.flow_version v ON v.id = r.version_id JOIN pelton.flow_project p ON p.id = r.project_id
WHERE p.name = $1 AND r.flow = $2 ORDER BY r.id DESC LIMIT $3
