-- Stores a version's flows.
INSERT INTO pelton.flow (version_id, name, nodes, graph)
SELECT $1, u.name, u.nodes, u.graph::json FROM unnest($2::text[], $3::int[], $4::text[]) AS u(name, nodes, graph)
