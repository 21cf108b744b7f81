-- Deletes runs that ended long ago. From then on nobody sees them; their nodes, which may be very many, are noted to be deleted by and by.
-- now() and not clock_timestamp(), so that the index ends the scan.
WITH old AS MATERIALIZED (
    SELECT r.id FROM pelton.flow_run r WHERE r.ended_at < now() - $1::interval ORDER BY r.ended_at LIMIT $2
    FOR UPDATE SKIP LOCKED
), timers AS (
    DELETE FROM pelton.flow_timer t WHERE t.run_id IN (SELECT id FROM old)
), reports AS (
    DELETE FROM pelton.flow_report f WHERE f.run_id IN (SELECT id FROM old)
), noted AS (
    INSERT INTO pelton.flow_swept (run_id) SELECT id FROM old
)
DELETE FROM pelton.flow_run r WHERE r.id IN (SELECT id FROM old)
