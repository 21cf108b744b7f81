-- Ends a session, and tells whose it was.
DELETE FROM pelton.access_session s USING pelton.access_user u WHERE s.hash = $1 AND u.id = s.user_id RETURNING u.name
