-- Disables a user, or ends that. The user's row is locked.
UPDATE pelton.access_user SET disabled_at = CASE WHEN $2 THEN clock_timestamp() END WHERE id = $1
