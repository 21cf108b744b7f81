-- Nodes of live runs by status, at most $1 of them; run by run, by their key. For a transaction without sequential scans.
SELECT 'nodes', n.status, count(*)::float8 FROM (
    SELECT n.status FROM (SELECT r.id FROM pelton.flow_run r WHERE r.ended_at IS NULL OFFSET 0) r
    CROSS JOIN LATERAL (SELECT x.status FROM pelton.flow_node x WHERE x.run_id = r.id OFFSET 0) n
    LIMIT $1
) n GROUP BY n.status
