-- Projects by name from behind $2 on: all, or those named in $1, whose names hold $3; each with its newest version and its last run. One look by index for each of
-- at most $4. No locks.
SELECT p.name, v.no, v.pushed_at, v.pushed_by, (SELECT count(*) FROM pelton.flow f WHERE f.version_id = v.id),
    (SELECT count(*) FROM (SELECT FROM pelton.flow_run l WHERE l.project_id = p.id AND l.ended_at IS NULL LIMIT 1000) l),
    r.id, r.flow, r.status, r.created_at
FROM pelton.flow_project p
CROSS JOIN LATERAL (SELECT n.* FROM pelton.flow_version n WHERE n.project_id = p.id ORDER BY n.no DESC LIMIT 1) v
LEFT JOIN LATERAL (SELECT l.* FROM pelton.flow_run l WHERE l.project_id = p.id ORDER BY l.id DESC LIMIT 1) r ON true
WHERE ($1::text[] IS NULL OR p.name = ANY ($1)) AND p.name > $2 AND ($3 = '' OR strpos(lower(p.name), lower($3)) > 0)
ORDER BY p.name LIMIT $4
