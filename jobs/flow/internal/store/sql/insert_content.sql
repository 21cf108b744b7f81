-- Stores a part of a content; somebody else may be storing the same.
INSERT INTO pelton.flow_content (hash, part, data) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
