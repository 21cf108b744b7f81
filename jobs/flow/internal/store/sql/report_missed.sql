-- Reports the ends of jobs that nobody reported: cancelled while they waited (a ticket in the line may still name them, but they will
-- not run), discarded by the reaper, or gone. Reports are known from the floor $1 on: one that is made twice is applied once.
WITH told AS MATERIALIZED (
    SELECT f.run_id, f.node, f.job_id FROM pelton.flow_reports_from($1, NULL) f WHERE f.job_id IS NOT NULL
), node AS MATERIALIZED (
    SELECT n.run_id, n.no, n.job_id FROM pelton.flow_run r JOIN pelton.flow_node n ON n.run_id = r.id
    WHERE r.ended_at IS NULL AND n.status IN ('QUEUED', 'KILLING') AND n.job_id IS NOT NULL
        AND NOT EXISTS (SELECT FROM told f WHERE f.run_id = n.run_id AND f.node = n.no AND f.job_id = n.job_id)
), last AS MATERIALIZED (
    SELECT n.run_id, n.no, n.job_id, coalesce(a.run, 0) AS run, a.outcome, a.attempt, a.started_at, a.ended_at, a.error, a.output,
        a.run IS NULL AND NOT EXISTS (SELECT FROM pelton.job j WHERE j.id = n.job_id) AS gone
    FROM node n
    LEFT JOIN LATERAL (SELECT l.* FROM pelton.job_attempt l WHERE l.job_id = n.job_id ORDER BY l.run DESC LIMIT 1) a ON true
), ended AS (
    SELECT l.*, l.outcome IN ('completed', 'cancelled', 'discarded') IS TRUE AS final FROM last l
    WHERE l.outcome IN ('completed', 'cancelled', 'discarded') OR l.gone
        OR pelton.voided(l.job_id, l.run + 1) IN ('cancelled', 'deleted') AND NOT pelton.is_leased(l.job_id, l.run + 1)
)
INSERT INTO pelton.flow_report (run_id, node, job_id, outcome, attempt, started_at, ended_at, error, output)
SELECT run_id, no, job_id, CASE WHEN final THEN outcome WHEN gone THEN 'discarded' ELSE 'cancelled' END::pelton.outcome, coalesce(attempt, 0),
    CASE WHEN final THEN started_at END, CASE WHEN final THEN ended_at END,
    CASE WHEN gone THEN 'the job of this node is gone' WHEN final THEN error ELSE 'cancelled before it started' END, CASE WHEN final THEN output END
FROM ended
