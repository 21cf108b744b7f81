-- Reports the ends of jobs that nobody reported: cancelled while they waited, discarded by the reaper, or gone.
WITH node AS MATERIALIZED (
    SELECT n.run_id, n.no, n.job_id FROM pelton.flow_run r JOIN pelton.flow_node n ON n.run_id = r.id
    WHERE r.ended_at IS NULL AND n.status IN ('QUEUED', 'RUNNING', 'KILLING') AND n.job_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM pelton.flow_report f WHERE f.run_id = n.run_id AND f.node = n.no AND f.job_id = n.job_id)
), ended AS (
    SELECT n.run_id, n.no, n.job_id, a.outcome, a.attempt, a.started_at, a.ended_at, a.error, a.output, a.run IS NULL AS gone
    FROM node n
    LEFT JOIN LATERAL (SELECT l.* FROM pelton.job_attempt l WHERE l.job_id = n.job_id ORDER BY l.run DESC LIMIT 1) a ON true
    WHERE a.outcome IN ('completed', 'cancelled', 'discarded')
        OR a.run IS NULL AND NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = n.job_id)
)
INSERT INTO pelton.flow_report (run_id, node, job_id, outcome, attempt, started_at, ended_at, error, output)
SELECT run_id, no, job_id, coalesce(outcome, 'discarded'), coalesce(attempt, 0), started_at, ended_at,
    CASE WHEN gone THEN 'the job of this node is gone' ELSE error END, output
FROM ended
