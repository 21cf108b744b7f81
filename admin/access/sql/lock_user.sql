-- Locks a user by name: what is done to one has an order.
SELECT u.id, u.name, u.disabled_at IS NOT NULL, u.password IS NOT NULL FROM pelton.access_user u
WHERE lower(u.name) = lower($1::text COLLATE "C") FOR NO KEY UPDATE
