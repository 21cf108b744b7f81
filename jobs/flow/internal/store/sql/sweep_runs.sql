-- Deletes runs that ended long ago, with their nodes.
WITH old AS MATERIALIZED (
    SELECT r.id FROM pelton.flow_run r WHERE r.ended_at < clock_timestamp() - $1::interval ORDER BY r.ended_at LIMIT $2
    FOR UPDATE SKIP LOCKED
), nodes AS (
    DELETE FROM pelton.flow_node n WHERE n.run_id IN (SELECT id FROM old)
), timers AS (
    DELETE FROM pelton.flow_timer t WHERE t.run_id IN (SELECT id FROM old)
), reports AS (
    DELETE FROM pelton.flow_report f WHERE f.run_id IN (SELECT id FROM old)
)
DELETE FROM pelton.flow_run r WHERE r.id IN (SELECT id FROM old)
