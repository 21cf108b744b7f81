-- Reads a part of a content.
SELECT data FROM pelton.flow_content WHERE hash = $1 AND part = $2
