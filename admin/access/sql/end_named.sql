-- Ends the session of a user that has a name, or, if $3, all others.
DELETE FROM pelton.access_session s WHERE s.user_id = $1 AND (encode(substring(s.hash FOR 8), 'hex') = $2) <> $3
