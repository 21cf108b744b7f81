-- Reads a flow's graph.
SELECT graph FROM pelton.flow WHERE version_id = $1 AND name = $2
