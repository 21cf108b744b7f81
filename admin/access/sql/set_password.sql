-- Sets a password. The user's row is locked.
UPDATE pelton.access_user SET password = $2, password_at = clock_timestamp() WHERE id = $1
