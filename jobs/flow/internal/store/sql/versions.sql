-- Lists versions, the newest first.
SELECT v.id, p.name, v.no, v.pushed_at, v.pushed_by, v.format, v.files, v.bytes,
    (SELECT count(*) FROM pelton.flow f WHERE f.version_id = v.id)::int, v.notes
FROM pelton.flow_project p JOIN pelton.flow_version v ON v.project_id = p.id
WHERE $1 = '' OR p.name = $1 ORDER BY v.id DESC LIMIT $2
