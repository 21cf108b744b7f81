-- Stores the answer under a key, in the transaction that took it.
UPDATE pelton.api_request SET answer = $3 WHERE actor = $1 AND key = $2
