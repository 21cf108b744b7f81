-- Stores the same value of a locked secret under another key.
UPDATE pelton.secret SET key = $3, nonce = $4, value = $5 WHERE project = $1 AND name = $2
