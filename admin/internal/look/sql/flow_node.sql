-- A node of a run, all of it; outputs and texts are cut.
SELECT n.no, n.path, CASE WHEN n.status = 'QUEUED' AND l.at IS NOT NULL THEN 'RUNNING' ELSE n.status END, n.try, n.attempt, n.job_id, n.queued_at,
    CASE WHEN n.status = 'QUEUED' THEN l.at ELSE n.started_at END, n.ended_at, n.template, left(n.item, 10000), left(n.reason, 20000), left(n.outputs::text, 100000), n.held, coalesce(n.jobs, '{}')
FROM pelton.flow_node n
LEFT JOIN LATERAL (SELECT max(b.claimed_at) AS at FROM pelton.job_lease b WHERE n.status = 'QUEUED' AND n.job_id = ANY (b.job_ids)
    AND b.claimed_at >= n.queued_at - interval '1 minute') l ON true
WHERE n.run_id = $1 AND n.no = $2
