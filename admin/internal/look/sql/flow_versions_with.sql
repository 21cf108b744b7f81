-- The numbers of the newest $3 versions of a project that have a flow, the newest first. Reads a project's versions by index from the newest on. No locks.
SELECT v.no, v.pushed_by
FROM pelton.flow_version v JOIN pelton.flow_project p ON p.id = v.project_id
WHERE p.name = $1 AND EXISTS (SELECT FROM pelton.flow f WHERE f.version_id = v.id AND f.name = $2)
ORDER BY v.no DESC LIMIT $3
