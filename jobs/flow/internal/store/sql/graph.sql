-- Reads a flow's graph.
SELECT graph::text::bytea FROM pelton.flow WHERE version_id = $1 AND name = $2
