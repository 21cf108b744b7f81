-- Lists users by name, whatever its case, with their roles: the one of a name ($1), after a name ($2), whose names hold a text ($3), at most $4; NULL is no bound.
SELECT u.id, u.name, u.created_at, u.disabled_at, u.password_at, coalesce(u.issuer, ''), coalesce(u.subject, ''), coalesce((
        SELECT json_agg(json_build_object('project', r.project, 'role', r.role, 'source', r.source) ORDER BY r.project, r.source)
        FROM pelton.access_role r WHERE r.user_id = u.id), '[]')
FROM pelton.access_user u
WHERE ($1::text IS NULL OR lower(u.name) = lower($1::text COLLATE "C")) AND lower(u.name) > coalesce(lower($2::text COLLATE "C"), '')
    AND ($3::text IS NULL OR strpos(lower(u.name), lower($3::text COLLATE "C")) > 0)
ORDER BY lower(u.name) LIMIT $4
