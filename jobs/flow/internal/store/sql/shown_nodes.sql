-- Reads the nodes of a run; one whose job some executor has taken is RUNNING since then. Leases are read if a node is queued, once, and only
-- those that are not older than the first of these.
WITH taken AS MATERIALIZED (
    SELECT u.id, max(l.claimed_at) AS at FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
    GROUP BY u.id
)
SELECT n.no, n.path, CASE WHEN t.id IS NOT NULL THEN 'RUNNING' ELSE n.status END,
    n.try, n.attempt, n.job_id, n.queued_at, coalesce(t.at, n.started_at), n.ended_at, n.template, n.index, n.item, n.reason, n.held, n.outputs, n.jobs
FROM pelton.flow_node n LEFT JOIN taken t ON t.id = n.job_id AND n.status = 'QUEUED'
WHERE n.run_id = $1 ORDER BY n.no
