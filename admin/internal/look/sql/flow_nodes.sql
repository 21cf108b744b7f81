-- Nodes of a run in order from behind number $4 on, with a status of $2 and $3 in their path, at most $5. Texts are cut. By the key of nodes, as far as is needed; leases are read if
-- a node is queued, those that are not older than the first of these.
WITH taken AS MATERIALIZED (
    SELECT u.id, max(l.claimed_at) AS at FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
    GROUP BY u.id
)
SELECT n.no, n.path, s.status, n.try, n.attempt, n.job_id, n.queued_at, s.at, n.ended_at, n.template, left(n.item, 200), left(n.reason, 5000)
FROM pelton.flow_node n CROSS JOIN LATERAL (
    SELECT CASE WHEN t.at IS NOT NULL THEN 'RUNNING' ELSE n.status END AS status, coalesce(t.at, n.started_at) AS at
    FROM (SELECT (SELECT k.at FROM taken k WHERE n.status = 'QUEUED' AND k.id = n.job_id) AS at) t
) s
WHERE n.run_id = $1 AND n.no > $4 AND ($3 = '' OR strpos(lower(n.path), lower($3)) > 0) AND (cardinality($2::text[]) = 0 OR s.status = ANY ($2))
ORDER BY n.no LIMIT $5
