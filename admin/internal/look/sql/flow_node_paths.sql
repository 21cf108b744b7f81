-- The paths of nodes of a run, by their numbers.
SELECT n.no, n.path FROM pelton.flow_node n WHERE n.run_id = $1 AND n.no = ANY ($2::int[]) ORDER BY n.no
