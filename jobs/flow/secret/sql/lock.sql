-- Locks a secret.
SELECT project, name, version, set_at, set_by, key, nonce, value FROM pelton.secret WHERE project = $1 AND name = $2 FOR UPDATE
