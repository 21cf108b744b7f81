-- Locks the secrets that another key than $1 has encrypted, in the order of their names.
SELECT project, name, version, set_at, set_by, key, nonce, value FROM pelton.secret WHERE key <> $1 ORDER BY project, name FOR UPDATE
