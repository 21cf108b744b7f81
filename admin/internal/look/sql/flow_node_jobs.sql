-- The jobs of a run's nodes from number $2 on, newest last, of at most $3 nodes that had one, and how many nodes there are.
SELECT n.no, n.path, coalesce(n.jobs, '{}') || n.job_id, (SELECT max(o.no) + 1 FROM pelton.flow_node o WHERE o.run_id = $1)
FROM pelton.flow_node n WHERE n.run_id = $1 AND n.no >= $2 AND n.job_id IS NOT NULL ORDER BY n.no LIMIT $3
