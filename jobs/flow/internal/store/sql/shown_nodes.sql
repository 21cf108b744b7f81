-- Reads the nodes of a run; one whose job some executor has taken is RUNNING.
WITH taken AS MATERIALIZED (SELECT DISTINCT unnest(l.job_ids) AS id FROM pelton.job_lease l)
SELECT n.no, n.path, CASE WHEN n.status = 'QUEUED' AND t.id IS NOT NULL THEN 'RUNNING' ELSE n.status END, n.try, n.attempt, n.job_id,
    n.queued_at, n.started_at, n.ended_at, n.template, n.index, n.item, n.reason, n.held, n.outputs, n.jobs
FROM pelton.flow_node n LEFT JOIN taken t ON t.id = n.job_id
WHERE n.run_id = $1 ORDER BY n.no
