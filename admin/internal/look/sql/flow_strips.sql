-- The flows of a version by name from behind $2 on, at most $3, each with its last $4 runs, the newest first: by index on (project_id, flow, id).
SELECT f.name, f.nodes, coalesce(r.ids, '{}'), coalesce(r.statuses, '{}'), r.began
FROM pelton.flow f JOIN pelton.flow_version v ON v.id = f.version_id
CROSS JOIN LATERAL (
    SELECT array_agg(l.id ORDER BY l.id DESC) AS ids, array_agg(l.status ORDER BY l.id DESC) AS statuses, max(l.created_at) AS began FROM (
        SELECT n.id, n.status, n.created_at FROM pelton.flow_run n WHERE n.project_id = v.project_id AND n.flow = f.name ORDER BY n.id DESC LIMIT $4
    ) l
) r
WHERE f.version_id = $1 AND f.name > $2 ORDER BY f.name LIMIT $3
