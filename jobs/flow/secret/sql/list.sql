-- Lists secrets without their values: of a project, or of all if $1 is NULL.
SELECT project, name, version, key, set_at, set_by FROM pelton.secret WHERE $1::text IS NULL OR project = $1 ORDER BY project, name
