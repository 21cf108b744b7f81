-- Finds a token that holds, and whose it is; tells whether it is time to note that it was used.
SELECT u.id, u.name, t.id, t.name, t.role, t.project, coalesce(t.used_at < clock_timestamp() - interval '1 minute', true), coalesce((
        SELECT json_agg(json_build_object('project', r.project, 'role', r.role)) FROM pelton.access_role r WHERE r.user_id = u.id), '[]')
FROM pelton.access_token t JOIN pelton.access_user u ON u.id = t.user_id
WHERE t.hash = $1 AND t.expires_at > clock_timestamp() AND t.revoked_at IS NULL AND u.disabled_at IS NULL
