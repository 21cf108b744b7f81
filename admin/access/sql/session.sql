-- Finds a live session and whose it is; tells whether it is time to note that it was seen.
SELECT u.id, u.name, s.seen_at < clock_timestamp() - interval '1 minute', coalesce((
        SELECT json_agg(json_build_object('project', r.project, 'role', r.role)) FROM pelton.access_role r WHERE r.user_id = u.id), '[]')
FROM pelton.access_session s JOIN pelton.access_user u ON u.id = s.user_id
WHERE s.hash = $1 AND s.expires_at > clock_timestamp() AND s.seen_at > clock_timestamp() - $2::interval AND u.disabled_at IS NULL
