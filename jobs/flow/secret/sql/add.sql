-- Adds a secret unless there is one of that name; waits for whoever is adding the same.
INSERT INTO pelton.secret (project, name, version, set_by, key, nonce, value) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING
