-- Lists versions of a project with numbers below $2, the newest first, by the key of project and number.
SELECT v.id, $1::text, v.no, v.pushed_at, v.pushed_by, v.format, v.files, v.bytes,
    (SELECT count(*) FROM pelton.flow f WHERE f.version_id = v.id)::int, v.notes
FROM pelton.flow_version v
WHERE v.project_id = (SELECT p.id FROM pelton.flow_project p WHERE p.name = $1) AND v.no < $2 ORDER BY v.no DESC LIMIT $3
