-- Deletes versions that no run names, older than the age, and not among the newest of their project. A run that is being made holds
-- its project's lock.
WITH old AS MATERIALIZED (
    SELECT v.id, v.project_id FROM pelton.flow_version v
    WHERE v.pushed_at < clock_timestamp() - $2::interval
        AND NOT EXISTS (SELECT FROM pelton.flow_run r WHERE r.version_id = v.id)
        AND $1 <= (SELECT count(*) FROM pelton.flow_version n WHERE n.project_id = v.project_id AND n.no > v.no)
    ORDER BY v.id LIMIT $3 FOR UPDATE SKIP LOCKED
)
DELETE FROM pelton.flow_version v WHERE v.id IN (SELECT id FROM old)
