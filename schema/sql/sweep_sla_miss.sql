-- Deletes what is known of missed limits of time that is as old as ticks that are dropped.
DELETE FROM pelton.flow_sla_miss WHERE id IN (
    SELECT m.id FROM pelton.flow_sla_miss m WHERE m.at < clock_timestamp() - $1::interval
    ORDER BY m.at LIMIT $2 FOR UPDATE SKIP LOCKED)
