-- SLAs missed since $1, by flow: by the index on their time, at most $4. $2 projects, $3 flows, empty: all.
WITH misses AS MATERIALIZED (
    SELECT m.project, m.flow, m.run_id, m.node, m.detail, m.at FROM pelton.flow_sla_miss m WHERE m.at >= $1 ORDER BY m.at DESC LIMIT $4
)
SELECT m.project || '/' || m.flow, count(*)::float8,
    (array_agg('run ' || m.run_id || coalesce(', node ' || m.node, '') || ' missed its SLA: ' || m.detail ORDER BY m.at DESC))[1]
    || CASE WHEN count(*) > 1 THEN ', one of ' || count(*) ELSE '' END
FROM misses m
WHERE (cardinality($2::text[]) = 0 OR m.project = ANY ($2::text[])) AND (cardinality($3::text[]) = 0 OR m.flow = ANY ($3::text[]))
GROUP BY m.project, m.flow ORDER BY 2 DESC, 1 LIMIT $5
