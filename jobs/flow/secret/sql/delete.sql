-- Deletes a secret.
DELETE FROM pelton.secret WHERE project = $1 AND name = $2 RETURNING version
