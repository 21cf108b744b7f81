-- What was asked under a key, and the answer. Locks nothing.
SELECT r.hash, r.answer FROM pelton.api_request r WHERE r.actor = $1 AND r.key = $2
