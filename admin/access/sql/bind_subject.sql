-- Gives a user without a password and without a subject the one that came with the name. The user's row is locked.
UPDATE pelton.access_user SET issuer = $2, subject = $3 WHERE id = $1 AND password IS NULL AND subject IS NULL
