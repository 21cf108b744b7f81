-- Lists the flows of the newest version of each project, with their last runs.
SELECT p.name, v.no, f.name, f.nodes, r.id, r.status, r.started_at
FROM pelton.flow_project p
CROSS JOIN LATERAL (SELECT n.id, n.no FROM pelton.flow_version n WHERE n.project_id = p.id ORDER BY n.no DESC LIMIT 1) v
JOIN pelton.flow f ON f.version_id = v.id
LEFT JOIN LATERAL (SELECT l.id, l.status, l.started_at FROM pelton.flow_run l
    WHERE l.project_id = p.id AND l.flow = f.name ORDER BY l.id DESC LIMIT 1) r ON true
WHERE $1 = '' OR p.name = $1 ORDER BY p.name, f.name
