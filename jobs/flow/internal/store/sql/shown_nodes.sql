-- Reads the nodes of a run, or the one with path $2; one whose job some executor has taken is RUNNING since then. Leases are read if a node is queued,
-- once, and only those that are not older than the first of these. Outputs are read as long as those of the first nodes take $3 bytes together (-1: all
-- are; 0: none), and other texts are cut then. What they take on disk is added up first, so that few are unpacked for nothing.
WITH taken AS MATERIALIZED (
    SELECT u.id, max(l.claimed_at) AS at FROM pelton.job_lease l, unnest(l.job_ids) AS u(id)
    WHERE l.claimed_at >= (SELECT min(q.queued_at) - interval '1 minute' FROM pelton.flow_node q WHERE q.run_id = $1 AND q.status = 'QUEUED')
    GROUP BY u.id
)
SELECT n.no, n.path, CASE WHEN t.id IS NOT NULL THEN 'RUNNING' ELSE n.status END,
    n.try, n.attempt, n.job_id, n.queued_at, coalesce(t.at, n.started_at), n.ended_at, n.template, n.index,
    CASE WHEN $3::bigint < 0 THEN n.item ELSE left(n.item, 1000) END, CASE WHEN $3 < 0 THEN n.reason ELSE left(n.reason, 5000) END, n.held,
    CASE WHEN n.fits THEN n.outputs END, n.jobs, n.outputs IS NOT NULL AND NOT n.fits
FROM (
    SELECT s.*, $3 < 0 OR s.stored <= $3 AND coalesce(sum(CASE WHEN s.stored <= $3 THEN octet_length(s.outputs::text) END) OVER (ORDER BY s.no), 0) <= $3 AS fits
    FROM (
        SELECT f.*, CASE WHEN $3 >= 0 THEN coalesce(sum(pg_column_size(f.outputs)) OVER (ORDER BY f.no), 0) END AS stored FROM pelton.flow_node f
        WHERE f.run_id = $1 AND ($2::text = '' OR f.path = $2)
    ) s
) n LEFT JOIN taken t ON t.id = n.job_id AND n.status = 'QUEUED'
ORDER BY n.no
