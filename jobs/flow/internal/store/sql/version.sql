-- Reads a version of a project, the newest if $2 is 0.
SELECT v.id, p.name, v.no, v.pushed_at, v.pushed_by, v.format, v.files, v.bytes,
    (SELECT count(*) FROM pelton.flow f WHERE f.version_id = v.id)::int, v.notes
FROM pelton.flow_project p JOIN pelton.flow_version v ON v.project_id = p.id
WHERE p.name = $1 AND ($2 = 0 OR v.no = $2) ORDER BY v.no DESC LIMIT 1
