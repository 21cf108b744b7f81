-- Lists secrets without their values, by the primary key: of some projects ($1), after a project and a name ($2, $3), at most $4; NULL is no bound.
SELECT project, name, version, key, set_at, set_by FROM pelton.secret
WHERE ($1::text[] IS NULL OR project = ANY ($1)) AND (project, name) > (coalesce($2::text, ''), coalesce($3::text, '')) ORDER BY project, name LIMIT $4
