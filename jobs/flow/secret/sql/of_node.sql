-- The secrets of some names that a node's job may have: those of its run's project, and those for all. A row without a name: there are none.
-- No row: the job is not the newest of that node.
SELECT p.name, coalesce(s.project, ''), coalesce(s.name, ''), coalesce(s.version, 0), coalesce(s.key, ''), s.nonce, s.value
FROM pelton.flow_node n JOIN pelton.flow_run r ON r.id = n.run_id JOIN pelton.flow_project p ON p.id = r.project_id
LEFT JOIN pelton.secret s ON s.project IN (p.name, '*') AND s.name = ANY ($4::text[])
WHERE n.run_id = $1 AND n.no = $2 AND n.job_id = $3
