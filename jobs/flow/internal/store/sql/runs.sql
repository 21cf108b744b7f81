-- Lists runs, the newest first.
SELECT r.id, r.version_id, p.name, v.no, r.flow, r.status, r.step, r.created_at, r.started_at, r.ended_at, r.resumed_at, r.created_by, r.before,
    r.pipeline, r.priority, r.options, r.project_id, v.format, r.followed, r.reason, r.trace
FROM pelton.flow_run r JOIN pelton.flow_version v ON v.id = r.version_id JOIN pelton.flow_project p ON p.id = r.project_id
WHERE ($1 = '' OR p.name = $1) AND ($2 = '' OR r.flow = $2) AND ($3 = '' OR r.status = $3) AND ($4::bigint = 0 OR r.id < $4)
    AND (NOT $5::boolean OR r.ended_at IS NULL) AND ($7::bigint[] IS NULL OR r.id = ANY ($7)) AND ($8::text[] IS NULL OR p.name = ANY ($8))
ORDER BY r.id DESC LIMIT $6
