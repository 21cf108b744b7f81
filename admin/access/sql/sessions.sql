-- Lists live sessions of a user, the newest first; they are named by a part of their hash.
SELECT encode(substring(s.hash FOR 8), 'hex'), s.created_at, s.seen_at, s.expires_at, s.address FROM pelton.access_session s
WHERE s.user_id = $1 AND s.expires_at > clock_timestamp() AND s.seen_at > clock_timestamp() - $2::interval ORDER BY s.created_at DESC
