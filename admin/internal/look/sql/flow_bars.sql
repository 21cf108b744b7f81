-- Nodes of a run that began, with a status of $2 and $3 in their path, from behind so many ($4) on, by their start, or if $6 the longest first; at most $5. Texts are cut. All of the run's nodes are
-- read by its key, and sorted; leases as in flow_nodes.
WITH taken AS MATERIALIZED (
    SELECT u.id, max(l.claimed_at) AS at FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
    GROUP BY u.id
), node AS (
    SELECT n.no, n.path, CASE WHEN t.id IS NOT NULL THEN 'RUNNING' ELSE n.status END AS status, n.try, n.attempt, n.job_id, n.queued_at,
        coalesce(t.at, n.started_at) AS started_at, n.ended_at, n.template, left(n.item, 200) AS item, left(n.reason, 500) AS reason
    FROM pelton.flow_node n LEFT JOIN taken t ON t.id = n.job_id AND n.status = 'QUEUED'
    WHERE n.run_id = $1 AND ($3 = '' OR strpos(lower(n.path), lower($3)) > 0)
)
SELECT n.no, n.path, n.status, n.try, n.attempt, n.job_id, n.queued_at, n.started_at, n.ended_at, n.template, n.item, n.reason FROM node n
WHERE (cardinality($2::text[]) = 0 OR n.status = ANY ($2)) AND n.started_at IS NOT NULL
ORDER BY CASE WHEN $6 THEN n.started_at - coalesce(n.ended_at, clock_timestamp()) END, n.started_at, n.no OFFSET $4 LIMIT $5
