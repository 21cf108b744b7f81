-- Makes the next version of a project, under its row's lock.
WITH project AS MATERIALIZED (
    SELECT id, name FROM pelton.flow_project WHERE name = $1 FOR NO KEY UPDATE
), made AS (
    INSERT INTO pelton.flow_version (project_id, no, pushed_by, format, files, bytes, notes)
    SELECT p.id, coalesce((SELECT max(v.no) FROM pelton.flow_version v WHERE v.project_id = p.id), 0) + 1, $2, $3, $4, $5, $6
    FROM project p
    RETURNING id, no, pushed_at, pushed_by, format, files, bytes, notes
)
SELECT m.id, p.name, m.no, m.pushed_at, m.pushed_by, m.format, m.files, m.bytes, $7::int, m.notes FROM made m, project p
