-- Locks the first parts of contents that no version names. A push that uses one again holds a lock on it, and is passed over.
SELECT c.hash FROM pelton.flow_content c
WHERE c.part = 0 AND NOT EXISTS (SELECT FROM pelton.flow_file f WHERE f.hash = c.hash) ORDER BY c.hash LIMIT $1 FOR UPDATE SKIP LOCKED
