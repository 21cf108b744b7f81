-- The newest $2 versions of a project older than number $3 (0: all), without their notes, but with how many there are.
SELECT v.id, v.no, v.pushed_at, v.pushed_by, v.format, v.files, v.bytes, (SELECT count(*) FROM pelton.flow f WHERE f.version_id = v.id),
    CASE WHEN json_typeof(v.notes) = 'array' THEN json_array_length(v.notes) ELSE 0 END
FROM pelton.flow_version v JOIN pelton.flow_project p ON p.id = v.project_id
WHERE p.name = $1 AND ($3 = 0 OR v.no < $3) ORDER BY v.no DESC LIMIT $2
