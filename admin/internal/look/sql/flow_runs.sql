-- Searches the next $7 runs below id $6 (0: from the newest on), of all projects, or of those in $1 ($1 and not all: by index, each project's own), and lists those with flow $2, a status
-- of $3, and created from $4 on and before $5 (NULL: any). The last row is where the search ended, with id and time alone; none: there is nothing more.
WITH seen AS MATERIALIZED (
    (SELECT r.* FROM pelton.flow_run r WHERE $1::text[] IS NULL AND ($6::bigint = 0 OR r.id < $6) ORDER BY r.id DESC LIMIT $7)
    UNION ALL
    (SELECT r.* FROM (SELECT p.id FROM pelton.flow_project p WHERE p.name = ANY ($1::text[])) p CROSS JOIN LATERAL (
        SELECT n.* FROM pelton.flow_run n WHERE n.project_id = p.id AND ($6::bigint = 0 OR n.id < $6) ORDER BY n.id DESC LIMIT $7
    ) r ORDER BY r.id DESC LIMIT $7)
), found AS (
    SELECT s.* FROM seen s WHERE ($2 = '' OR s.flow = $2) AND (cardinality($3::text[]) = 0 OR s.status = ANY ($3))
        AND ($4::timestamptz IS NULL OR s.created_at >= $4) AND ($5::timestamptz IS NULL OR s.created_at < $5)
    ORDER BY s.id DESC LIMIT $8
)
SELECT f.id, p.name, v.no, f.flow, f.status, f.created_at, f.started_at, f.ended_at, f.created_by, false
FROM found f JOIN pelton.flow_project p ON p.id = f.project_id JOIN pelton.flow_version v ON v.id = f.version_id
UNION ALL
(SELECT s.id, '', 0, '', '', s.created_at, NULL, NULL, '', true FROM seen s
    WHERE (SELECT count(*) FROM seen) = $7 ORDER BY s.id LIMIT 1)
ORDER BY 1 DESC, 10
