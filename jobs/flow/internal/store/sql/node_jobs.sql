-- Lists the jobs of a run's nodes from behind job $3 on, in the order in which they were made, at most $4; of the node with path $2 and those in it, or of all.
SELECT n.path, j.id FROM pelton.flow_node n CROSS JOIN LATERAL (SELECT n.job_id AS id UNION ALL SELECT unnest(n.jobs)) j
WHERE n.run_id = $1 AND j.id > $3 AND ($2::text = '' OR n.path = $2 OR starts_with(n.path, $2 || ':') OR starts_with(n.path, $2 || '['))
ORDER BY j.id LIMIT $4
