-- Nodes of a run, with a status of $2 and $3 in their path, in the order $4: graph (from behind number $5 on), start or longest (from behind so many on); at most $6. Texts are
-- cut. A run's nodes are found by its key; leases are read if a node is queued, those that are not older than the first of these.
WITH taken AS MATERIALIZED (
    SELECT u.id, max(l.claimed_at) AS at FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
    GROUP BY u.id
), node AS (
    SELECT n.no, n.path, CASE WHEN t.id IS NOT NULL THEN 'RUNNING' ELSE n.status END AS status, n.try, n.attempt, n.job_id, n.queued_at,
        coalesce(t.at, n.started_at) AS started_at, n.ended_at, n.template, left(n.item, 200) AS item, left(n.reason, 500) AS reason
    FROM pelton.flow_node n LEFT JOIN taken t ON t.id = n.job_id AND n.status = 'QUEUED'
    WHERE n.run_id = $1 AND ($4 <> 'graph' OR n.no > $5) AND ($3 = '' OR strpos(lower(n.path), lower($3)) > 0)
)
SELECT n.no, n.path, n.status, n.try, n.attempt, n.job_id, n.queued_at, n.started_at, n.ended_at, n.template, n.item, n.reason FROM node n
WHERE (cardinality($2::text[]) = 0 OR n.status = ANY ($2)) AND ($4 = 'graph' OR n.started_at IS NOT NULL)
ORDER BY CASE WHEN $4 = 'longest' THEN n.started_at - coalesce(n.ended_at, clock_timestamp()) END, CASE WHEN $4 = 'start' THEN n.started_at END, n.no
OFFSET CASE WHEN $4 = 'graph' THEN 0 ELSE $5 END LIMIT $6
