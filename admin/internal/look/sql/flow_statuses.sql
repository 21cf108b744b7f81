-- The statuses of a run's nodes: a letter for each node of the graph, in order (instances of for_each are left out), and how many nodes have which. One whose
-- job an executor has taken is RUNNING, as in flow_nodes.
WITH taken AS MATERIALIZED (
    SELECT u.id FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
), node AS MATERIALIZED (
    SELECT n.no, n.template, CASE WHEN n.status = 'QUEUED' AND n.job_id IN (SELECT t.id FROM taken t) THEN 'RUNNING' ELSE n.status END AS status
    FROM pelton.flow_node n WHERE n.run_id = $1
), word AS (
    SELECT w.status, w.letter FROM unnest($2::text[], $3::text[]) AS w(status, letter)
), total AS (
    SELECT n.status, count(*) AS n FROM node n GROUP BY n.status ORDER BY n.status
)
SELECT coalesce((SELECT string_agg(coalesce(w.letter, '?'), '' ORDER BY n.no) FROM node n LEFT JOIN word w ON w.status = n.status WHERE n.template IS NULL), ''),
    coalesce((SELECT array_agg(t.status ORDER BY t.status) FROM total t), '{}'), coalesce((SELECT array_agg(t.n ORDER BY t.status) FROM total t), '{}')
