-- Lists users by name, or the one of a name, with their roles.
SELECT u.id, u.name, u.created_at, u.disabled_at, u.password_at, coalesce(u.issuer, ''), coalesce(u.subject, ''), coalesce((
        SELECT json_agg(json_build_object('project', r.project, 'role', r.role, 'source', r.source) ORDER BY r.project, r.source)
        FROM pelton.access_role r WHERE r.user_id = u.id), '[]')
FROM pelton.access_user u WHERE $1::text IS NULL OR lower(u.name) = lower($1::text COLLATE "C")
ORDER BY lower(u.name)
