-- Takes a key for a request, unless somebody has it. Waits for a transaction that is just taking it.
INSERT INTO pelton.api_request (actor, key, hash) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
