-- Ends all sessions of a user whose row is locked: none can begin meanwhile.
DELETE FROM pelton.access_session WHERE user_id = $1
