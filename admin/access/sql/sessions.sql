-- Lists live sessions of a user, the newest first.
SELECT s.created_at, s.seen_at, s.expires_at, s.address FROM pelton.access_session s
WHERE s.user_id = $1 AND s.expires_at > clock_timestamp() AND s.seen_at > clock_timestamp() - $2::interval ORDER BY s.created_at DESC
