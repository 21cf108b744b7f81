-- Lists flows of the newest version of each project, with their last runs, by project and name: after a flow ($2, $3), at most $4, all if that is 0.
-- No more of a project's flows than that are read, and last runs only of what is listed: BETWEEN
-- and its order leave flow_run_flow as the only index, also for a flow that never ran in a project with many runs.
SELECT f.project, f.no, f.name, f.nodes, r.id, r.status, r.started_at
FROM (
    SELECT p.id AS project_id, p.name AS project, v.no, l.name, l.nodes
    FROM pelton.flow_project p
    CROSS JOIN LATERAL (SELECT n.id, n.no FROM pelton.flow_version n WHERE n.project_id = p.id ORDER BY n.no DESC LIMIT 1) v
    CROSS JOIN LATERAL (SELECT w.name, w.nodes FROM pelton.flow w
        WHERE w.version_id = v.id AND w.name > CASE WHEN p.name = $2 THEN $3::text ELSE '' END ORDER BY w.name LIMIT nullif($4::int, 0)) l
    WHERE p.name >= $2 AND ($1 = '' OR p.name = $1) AND ($5::text[] IS NULL OR p.name = ANY ($5))
    ORDER BY p.name, l.name LIMIT nullif($4::int, 0)
) f
LEFT JOIN LATERAL (SELECT l.id, l.status, l.started_at FROM pelton.flow_run l
    WHERE l.project_id = f.project_id AND l.flow BETWEEN f.name AND f.name ORDER BY l.flow, l.id DESC LIMIT 1) r ON true
ORDER BY f.project, f.name
