-- Turns due timers into actions. Skips those that somebody else is firing. now() and not clock_timestamp(), so that the index ends the scan.
WITH due AS MATERIALIZED (
    SELECT t.ctid AS tid FROM pelton.flow_timer t WHERE t.at <= now() ORDER BY t.at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM pelton.flow_timer WHERE ctid = ANY (ARRAY(SELECT tid FROM due)) RETURNING run_id, node, what, args
)
INSERT INTO pelton.flow_report (run_id, node, action, args) SELECT run_id, nullif(node, -1), what, args FROM gone
