-- Makes the nodes of a run.
INSERT INTO pelton.flow_node (run_id, no, path, status)
SELECT $1, u.no - 1, u.path, u.status FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS u(path, status, no)
